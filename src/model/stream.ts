import {
  jsonSchema,
  experimental_streamLanguageModelCall as streamLanguageModelCall,
  type ToolSet,
} from "ai";
import { sendEach, type Backpressure } from "../base/async.ts";
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
import { ProviderFailure, redact, refusedCallBy, stalled, toAgentError } from "./failure.ts";
import type { ModelRequest, StepEnd, StepEvent } from "./model.ts";
import { RequestMessages } from "./request/request-messages.ts";
import type { Quirks } from "./quirks.ts";
import { StepEvents, type StreamedPart } from "./answer/step-events.ts";
import { toModelMessages } from "./request/to-model-messages.ts";
import { toolSchema } from "./request/tool-schema.ts";

export { Clients };

// The SDK writes warnings to stdout, where only the protocol may speak.
Reflect.set(globalThis, "AI_SDK_LOG_WARNINGS", false);

export interface StreamDeps {
  readonly clients: Clients;
  readonly log: Log;
}

/** The most output tokens that are asked for where nothing else is said. */
const outputTokensLimit = 32_000;
/** Fewer output tokens are not asked for: the provider decides whether they fit. */
const leastOutputTokens = 1_024;
/** Tokens that stay free beside prompt and answer. */
const windowMargin = 256;
/** By how much an estimate may be too low that no count of the provider has corrected. */
const estimateError = 1.2;

/** Contexts above this hold any instructions and tools, in tokens. */
const smallContextLimit = 16_384;
/** English and JSON have about four to a token. */
const mostCharactersPerToken = 5;

/** Secrets shorter than this are not looked for in messages: they would match anywhere. */
const shortestSecret = 6;

/**
 * One model call. It ends soon after an abort, even where the provider or the SDK ignores it. Text that streamed before
 * a failure stands; calls that were not whole are not told. Resolves and rejects as `call` of `Models` does.
 */
export async function callModel(
  request: ModelRequest,
  endpoint: Endpoint,
  deps: StreamDeps,
  take: (event: StepEvent) => Backpressure,
): Promise<StepEnd> {
  const connection = new AbortController();
  const forward = () => connection.abort();
  request.signal.addEventListener("abort", forward, { once: true });
  const events = new StepEvents();
  // Not events yet, which change with what was told before: an abort drops what waits here, and each part that came is a
  // sign of life, also where nothing is told of it.
  const limits = { signal: request.signal, silenceMs: endpoint.stallMs };
  const arrivals = new OrderedQueue<StreamedPart>(limits, (part) => sendEach(events.add(part), take));
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
  await sendEach(events.close(), take);
  const refused = "thrown" in outcome ? refusedCallBy(outcome.thrown) : undefined;
  if (refused !== undefined && request.returnsRefusedCalls !== false && !request.signal.aborted) {
    deps.log.debug("provider refused a call", { provider: endpoint.provider, tool: refused.tool });
    await sendEach(events.emitRefusedCall(refused), take);
    return { ...finishOf("tool-calls", events, request), refusedCall: true };
  }
  return endOf(outcome, events, request).catch((thrown: unknown) => {
    const error = request.signal.aborted ? cancelled() : errorOf(thrown, endpoint);
    const { code, status } = error;
    deps.log.debug("model call failed", { provider: endpoint.provider, code, status });
    const { details } = events.reasoning;
    // Calls that were whole stand, and go back with what was thought before them.
    return { type: "failed", error, ...(details !== undefined && { reasoningDetails: details }) };
  });
}

interface OpenDeps extends StreamDeps {
  readonly watch: StreamWatch;
  readonly signal: AbortSignal;
}

async function openStream(request: ModelRequest, endpoint: Endpoint, deps: OpenDeps) {
  if (!/^https?:\/\//.test(endpoint.baseURL) || !URL.canParse(endpoint.baseURL)) {
    throw new ProviderFailure(badAddress(endpoint));
  }
  const tooSmall = smallContext(request);
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
      maxOutputTokens: request.maxOutputTokens ?? outputLimitOf(request),
      ...(model.abilities.temperature && { temperature: request.temperature, topP: request.topP }),
      ...optionsFor({ ...endpoint.options, ...request.options }),
      abortSignal: deps.signal,
    }),
  );
  return stream;
}

const keptToolSets = memoizePer<ToolSet>();

/** Tools without `execute`: the SDK tells their calls and runs nothing. */
function toToolSet({ tools }: ModelRequest, quirks: Quirks): ToolSet | undefined {
  if (tools.length === 0) return undefined;
  return keptToolSets(tools, [quirks], () =>
    Object.fromEntries(
      tools.map(({ name, description, schema }) => [
        name,
        { description, inputSchema: jsonSchema(toolSchema(schema, quirks)) },
      ]),
    ),
  );
}

async function endOf(outcome: Outcome, events: StepEvents, request: ModelRequest): Promise<StepEnd> {
  if ("thrown" in outcome) throw outcome.thrown;
  if (events.endReason === undefined) throw new Error("the answer ended without an end");
  return finishOf(events.endReason, events, request);
}

function finishOf(
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

function errorOf(thrown: unknown, endpoint: Endpoint): AgentError {
  if (thrown instanceof StreamTimeoutError) return stalled(endpoint.stallMs);
  const error = toAgentError(thrown, endpoint);
  return { ...error, message: redact(error.message, secretsOf(endpoint)) };
}

const badAddress = ({ provider, baseURL }: Endpoint): AgentError => ({
  code: "bad-request",
  message: `The base URL of ${provider} must begin with http:// or https://, but is "${baseURL}".`,
  retryable: false,
});

/**
 * Local servers are often started with less context than instructions and tools alone take, and some of them then cut
 * the prompt without a word. Counted so low that no request that fits is refused.
 */
function smallContext({ model, system, tools }: ModelRequest): AgentError | undefined {
  const { context } = model.limit;
  if (context === undefined || context > smallContextLimit) return undefined;
  const length = system.join("").length + JSON.stringify(tools).length;
  const tokens = Math.floor(length / mostCharactersPerToken);
  if (tokens < context) return undefined;
  return {
    code: "bad-request",
    message: `The context of ${model.ref.model} holds ${context} tokens, but instructions and tools alone take more than ${tokens}. Start the server, or load the model, with a larger context; where it has one, correct "limit.context" in the configuration or run "fairlead models --discover".`,
    retryable: false,
  };
}

const secretsOf = ({ apiKey, headers }: Endpoint): string[] =>
  [apiKey ?? "", ...Object.values(headers).flatMap((value) => [value, value.replace(/^\w+ /, "")])].filter(
    (secret) => secret.length >= shortestSecret,
  );

/** What the model may write, so that prompt and answer fit into its window together. */
function outputLimitOf(request: ModelRequest): number | undefined {
  const { context = Number.POSITIVE_INFINITY, output } = request.model.limit;
  if (output === undefined) return undefined;
  const prompt = request.promptTokens ?? estimateRequest(request) * estimateError;
  const left = Math.floor(context - prompt - windowMargin);
  return Math.min(output, outputTokensLimit, Math.max(left, leastOutputTokens));
}

/** Without options the SDK needs no schema to check them, which would load before the request. */
function optionsFor(options: Record<string, unknown>) {
  // They come from files and so are JSON, but their type does not say so.
  const json: Record<string, string> = JSON.parse(JSON.stringify(options));
  return Object.keys(json).length > 0 && { providerOptions: { [sdkName]: json } };
}
