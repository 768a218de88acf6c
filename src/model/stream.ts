import {
  jsonSchema,
  experimental_streamLanguageModelCall as streamLanguageModelCall,
  type ToolSet,
} from "ai";
import { memoizePer } from "../base/memoize.ts";
import type { Log } from "../base/log.ts";
import { estimateText } from "../message/estimate.ts";
import { estimateRequest } from "../message/estimate-request.ts";
import type { AgentError, FinishReason } from "../message/message.ts";
import type { Tokens } from "../message/part.ts";
import { OrderedQueue, type Outcome, StreamTimeoutError } from "./answer/ordered-queue.ts";
import { cancelled } from "./cancelled.ts";
import { Clients, type Endpoint, sdkName } from "./client.ts";
import type { StreamWatch } from "./answer/chunk-merger.ts";
import { ProviderFailure, redact, findRefusedCall, stallError, toAgentError } from "./failure.ts";
import type { ModelRequest, StepEnd, StepEvent } from "./model.ts";
import { RequestMessages } from "./request/request-messages.ts";
import type { Quirks } from "./quirks.ts";
import { StepEvents, type StreamedPart } from "./answer/step-events.ts";
import { toModelMessages } from "./request/to-model-messages.ts";
import { toolSchema } from "./request/tool-schema.ts";

export { Clients };

// Stops the SDK from logging warnings to stdout, which carries the protocol.
Reflect.set(globalThis, "AI_SDK_LOG_WARNINGS", false);

export interface StreamDeps {
  readonly clients: Clients;
  readonly log: Log;
}

/** Default limit of output tokens. */
const outputTokensLimit = 32_000;
/** Minimum of requested output tokens: the provider decides whether they fit. */
const minOutputTokens = 1_024;
/** Tokens left free in addition to prompt and answer. */
const windowMargin = 256;
/** Factor by which an uncorrected estimate may be too low. */
const estimateError = 1.2;

/** Larger contexts, in tokens, always fit instructions and tools. */
const smallContextLimit = 16_384;
/** Generous: English and JSON have about four characters per token. */
const maxCharactersPerToken = 5;

/** Shorter secrets are not redacted in messages: they would match anywhere. */
const minSecretLength = 6;

/**
 * Makes one model call. Resolves and rejects as `call` of `Models` does.
 *
 * - Ends soon after an abort, even if the provider or the SDK ignores it.
 * - After a failure, text that was already emitted remains; incomplete calls are not emitted.
 */
export async function callModel(
  request: ModelRequest,
  endpoint: Endpoint,
  deps: StreamDeps,
  take: (event: StepEvent) => void,
): Promise<StepEnd> {
  const connection = new AbortController();
  const forward = () => connection.abort();
  request.signal.addEventListener("abort", forward, { once: true });
  const events = new StepEvents();
  // Queues parts, not events: an abort drops queued parts, and each part resets the silence limit even without events.
  const limits = { signal: request.signal, silenceMs: endpoint.stallMs };
  const arrivals = new OrderedQueue<StreamedPart>(limits, (part) => {
    for (const event of events.add(part)) take(event);
    return request.waitUntilReady?.();
  });
  let failure: unknown;
  const watch: StreamWatch = {
    onText: (kind, text) => arrivals.push({ type: `${kind}-delta`, text }),
    onFailure: (thrown) => {
      failure ??= thrown;
    },
    onSignature: (id, signature) => events.addSignature(id, signature),
    onReasoningDetails: (details) => events.reasoning.add(details),
    onUsage: (usage) => events.reportUsage(usage),
  };
  const read = async () => {
    const stream = await openStream(request, endpoint, { ...deps, watch, signal: connection.signal });
    for await (const part of stream) {
      if (part.type === "error") throw failure ?? part.error;
      await arrivals.push(part);
    }
  };
  read().then(
    () => arrivals.end({ by: "all" }),
    (thrown: unknown) => arrivals.end({ by: "producer", thrown }),
  );
  const outcome = await arrivals.over;
  request.signal.removeEventListener("abort", forward);
  if (events.endReason === undefined) connection.abort();
  if (outcome.by === "consumer") throw outcome.thrown;
  for (const event of events.close()) take(event);
  const refused = "thrown" in outcome ? findRefusedCall(outcome.thrown) : undefined;
  if (refused !== undefined && request.returnsRefusedCalls !== false && !request.signal.aborted) {
    deps.log.debug("provider refused a call", { provider: endpoint.provider, tool: refused.tool });
    for (const event of events.emitRefusedCall(refused)) take(event);
    return { ...createFinish("tool-calls", events, request), refusedCall: true };
  }
  return toStepEnd(outcome, events, request).catch((thrown: unknown) => {
    const error = request.signal.aborted ? cancelled() : toRedactedError(thrown, endpoint);
    const { code, status } = error;
    deps.log.debug("model call failed", { provider: endpoint.provider, code, status });
    const { details } = events.reasoning;
    // Complete calls remain and are sent back with their reasoning.
    return { type: "failed", error, ...(details !== undefined && { reasoningDetails: details }) };
  });
}

interface OpenDeps extends StreamDeps {
  readonly watch: StreamWatch;
  readonly signal: AbortSignal;
}

async function openStream(request: ModelRequest, endpoint: Endpoint, deps: OpenDeps) {
  if (!/^https?:\/\//.test(endpoint.baseURL) || !URL.canParse(endpoint.baseURL)) {
    throw new ProviderFailure(invalidAddressError(endpoint));
  }
  const tooSmall = checkContextSize(request);
  if (tooSmall !== undefined) throw new ProviderFailure(tooSmall);
  const { model } = request;
  const { model: client, connection, quirks, conversations } = deps.clients.for(endpoint);
  const { conversions, sent } = conversations.of(request.messages);
  const outgoing = new RequestMessages(toModelMessages(request.messages, { model, quirks, conversions }));
  const tools = toToolSet(request, quirks);
  const call = { watch: deps.watch, sent, outgoing, tools };
  const { stream } = await connection.open(deps.signal, call, () =>
    streamLanguageModelCall({
      model: client,
      ...(request.system.length > 0 && { instructions: request.system.join("\n\n") }),
      messages: outgoing.fresh,
      tools,
      maxOutputTokens: request.maxOutputTokens ?? outputTokensFor(request),
      ...(model.abilities.temperature && { temperature: request.temperature, topP: request.topP }),
      ...toProviderOptions({ ...endpoint.options, ...request.options }),
      abortSignal: deps.signal,
    }),
  );
  return stream;
}

const cachedToolSets = memoizePer<ToolSet>();

/** Creates tools without `execute`: the SDK reports calls but does not run them. */
function toToolSet({ tools }: ModelRequest, quirks: Quirks): ToolSet | undefined {
  if (tools.length === 0) return undefined;
  return cachedToolSets(tools, [quirks], () =>
    Object.fromEntries(
      tools.map(({ name, description, schema }) => [
        name,
        { description, inputSchema: jsonSchema(toolSchema(schema, quirks)) },
      ]),
    ),
  );
}

async function toStepEnd(outcome: Outcome, events: StepEvents, request: ModelRequest): Promise<StepEnd> {
  if ("thrown" in outcome) throw outcome.thrown;
  if (events.endReason === undefined) throw new Error("the answer ended without an end");
  return createFinish(events.endReason, events, request);
}

function createFinish(
  reason: FinishReason,
  events: StepEvents,
  request: ModelRequest,
): StepEnd & { type: "finish" } {
  const { tokens, reasoning } = events;
  const { details } = reasoning;
  return {
    type: "finish",
    reason,
    tokens: tokens ?? estimate(events.output, request),
    ...(tokens === undefined && { estimated: true }),
    ...(details !== undefined && { reasoningDetails: details }),
  };
}

function estimate(written: string, request: ModelRequest): Tokens {
  return {
    input: estimateRequest(request),
    output: estimateText(written),
    reasoning: 0,
    cache: { read: 0, write: 0 },
  };
}

function toRedactedError(thrown: unknown, endpoint: Endpoint): AgentError {
  if (thrown instanceof StreamTimeoutError) return stallError(endpoint.stallMs);
  const error = toAgentError(thrown, endpoint);
  return { ...error, message: redact(error.message, listSecrets(endpoint)) };
}

const invalidAddressError = ({ provider, baseURL }: Endpoint): AgentError => ({
  code: "bad-request",
  message: `The base URL of ${provider} must begin with http:// or https://, but is "${baseURL}".`,
  retryable: false,
});

/**
 * Returns an error if instructions and tools alone exceed the context: local servers are often started with too little,
 * and some silently truncate the prompt. The estimate is low, so that no request that fits is rejected.
 */
function checkContextSize({ model, system, tools }: ModelRequest): AgentError | undefined {
  const { context } = model.limit;
  if (context === undefined || context > smallContextLimit) return undefined;
  const length = system.join("").length + JSON.stringify(tools).length;
  const tokens = Math.floor(length / maxCharactersPerToken);
  if (tokens < context) return undefined;
  return {
    code: "bad-request",
    message: `The context of ${model.ref.model} holds ${context} tokens, but instructions and tools alone take more than ${tokens}. Start the server, or load the model, with a larger context; where it has one, correct "limit.context" in the configuration or run "fairlead models --discover".`,
    retryable: false,
  };
}

const listSecrets = ({ apiKey, headers }: Endpoint): string[] =>
  [apiKey ?? "", ...Object.values(headers).flatMap((value) => [value, value.replace(/^\w+ /, "")])].filter(
    (secret) => secret.length >= minSecretLength,
  );

/** Returns the limit of output tokens with which prompt and answer fit into the window. */
function outputTokensFor(request: ModelRequest): number | undefined {
  const { context = Number.POSITIVE_INFINITY, output } = request.model.limit;
  if (output === undefined) return undefined;
  const prompt = request.promptTokens ?? estimateRequest(request) * estimateError;
  const left = Math.floor(context - prompt - windowMargin);
  return Math.min(output, outputTokensLimit, Math.max(left, minOutputTokens));
}

/** Returns provider options, or false if there are none: the SDK then loads no schema to validate them. */
function toProviderOptions(options: Record<string, unknown>) {
  // Options come from JSON files, which their type does not express.
  const json: Record<string, string> = JSON.parse(JSON.stringify(options));
  return Object.keys(json).length > 0 && { providerOptions: { [sdkName]: json } };
}
