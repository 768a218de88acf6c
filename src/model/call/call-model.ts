import { orWhenAborted } from "../../base/async.ts";
import type { Log } from "../../base/log.ts";
import { memoizePer } from "../../base/memoize.ts";
import { estimateText } from "../../message/estimate.ts";
import { estimateRequest } from "../../message/estimate-request.ts";
import type { AgentError, FinishReason } from "../../message/message.ts";
import type { Tokens } from "../../message/part.ts";
import writtenCalls from "../../../prompts/written-calls.md";
import { cancelled } from "../cancelled.ts";
import { findRefusedCall, ProviderFailure, redact, toAgentError } from "../failure.ts";
import type { ModelRequest, StepEnd, StepEvent } from "../model.ts";
import type { Quirks } from "../quirks.ts";
import { toolSchema } from "../request/tool-schema.ts";
import { Connection } from "../streams/connection.ts";
import type { CallParams, Endpoint, StreamPart, WireCall } from "../wires/wire.ts";
import { quirksFor, Wires } from "../wires/wires.ts";
import { responseTag } from "../answer/written-calls/call-texts.ts";
import { toPrompt } from "./prompt.ts";
import { StepEvents } from "./step-events.ts";
import { TextCalls } from "../answer/written-calls/text-calls.ts";

export { Wires };

export interface CallDeps {
  readonly wires: Wires;
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
  { wires, log }: CallDeps,
  take: (event: StepEvent) => void,
): Promise<StepEnd> {
  const { provider, model } = request.model.ref;
  const owner = { provider, model, api: endpoint.api ?? "chat", host: hostOf(endpoint) };
  const mayCall = request.model.callsAsText && request.toolChoice !== "none";
  const events = new StepEvents(owner, take, mayCall ? new TextCalls(request) : undefined);
  const connection = new Connection(request.signal, endpoint.stallMs);
  const open = () => openStream(request, endpoint, wires, connection);
  const failure = await readAnswer(request, connection, open, events);
  events.close();
  const { metadata, endReason = "unknown", tokens } = events;
  const finish = (reason: FinishReason): StepEnd & { type: "finish" } => ({
    type: "finish",
    reason,
    tokens: tokens ?? estimate(events.output, request),
    ...(tokens === undefined && { estimated: true }),
    ...(wires.refused.has(addressOf(request, endpoint), "thoughts") && { omitsThoughts: true }),
    ...(metadata && { metadata }),
  });
  if (failure === undefined) return finish(endReason);
  const refused = findRefusedCall(failure);
  if (refused !== undefined && request.returnsRefusedCalls !== false && !request.signal.aborted) {
    log.debug("provider refused a call", { provider: endpoint.provider, tool: refused.tool });
    events.emitRefusedCall(refused);
    return { ...finish("tool-calls"), refusedCall: true };
  }
  const error = request.signal.aborted ? cancelled() : toRedactedError(failure, endpoint);
  const { code, status } = error;
  log.debug("model call failed", { provider: endpoint.provider, code, status });
  // Complete calls remain and are sent back with their reasoning.
  return { type: "failed", error, ...(metadata && { metadata }) };
}

/** Reads the answer into events. Resolves with an error of the call; rejects with an error of the consumer. */
async function readAnswer(
  { waitUntilReady }: ModelRequest,
  connection: Connection,
  open: () => Promise<ReadableStream<StreamPart>>,
  events: StepEvents,
): Promise<unknown> {
  const { signal } = connection;
  let failure: unknown;
  try {
    const stream = await open().catch((thrown: unknown) => {
      failure = thrown;
      connection.cut();
    });
    for await (const part of stream ?? []) {
      if (part.type === "error") failure = part.error;
      else if (signal.aborted) failure ??= signal.reason;
      if (failure === undefined) events.add(part);
      else if (part.type === "finish") events.addUsage(part);
      if (signal.aborted || waitUntilReady === undefined) continue;
      connection.hold();
      await waitUntilReady();
      connection.touch();
    }
  } finally {
    connection.close();
  }
  return failure;
}

async function openStream(
  request: ModelRequest,
  endpoint: Endpoint,
  wires: Wires,
  connection: Connection,
): Promise<ReadableStream<StreamPart>> {
  if (!/^https?:\/\//.test(endpoint.baseURL) || !URL.canParse(endpoint.baseURL)) {
    throw new ProviderFailure(invalidAddressError(endpoint));
  }
  const tooSmall = checkContextSize(request);
  if (tooSmall !== undefined) throw new ProviderFailure(tooSmall);
  const { signal } = connection;
  for (;;) {
    signal.throwIfAborted();
    try {
      const { params, call } = toCallParams(request, endpoint, wires);
      const stream = await orWhenAborted(wires.open(call, params, connection), signal, undefined);
      if (stream !== undefined) return stream;
    } catch (thrown) {
      signal.throwIfAborted();
      // Sends the request again without the field that the server rejected.
      if (!wires.refused.add(addressOf(request, endpoint), toAgentError(thrown, endpoint))) throw thrown;
    }
  }
}

/** Returns the parameters of the SDK's call, and further options for the wire. */
function toCallParams(
  request: ModelRequest,
  endpoint: Endpoint,
  { refused }: Wires,
): { params: CallParams; call: WireCall } {
  const { model, messages } = request;
  const address = addressOf(request, endpoint);
  const quirks = quirksFor(endpoint);
  const system = [...request.system, ...describeTools(request)].join("\n\n");
  const prompt = toPrompt(messages, {
    model,
    api: endpoint.api ?? "chat",
    host: hostOf(endpoint),
    quirks,
    omitsThoughts: refused.has(address, "thoughts"),
  });
  const maxOutputTokens = request.maxOutputTokens ?? outputTokensFor(request);
  const { temperature, topP } = request;
  const params: CallParams = {
    prompt: system === "" ? prompt : [{ role: "system", content: system }, ...prompt],
    ...(sendsTools(request, quirks, refused.has(address, "tool-choice")) && {
      tools: toTools(request, quirks),
      toolChoice: { type: request.toolChoice ?? "auto" },
    }),
    ...(model.callsAsText && request.tools.length > 0 && { stopSequences: [responseTag] }),
    ...(maxOutputTokens !== undefined && { maxOutputTokens }),
    ...(model.abilities.temperature && temperature !== undefined && { temperature }),
    ...(model.abilities.temperature && topP !== undefined && { topP }),
  };
  const call: WireCall = {
    endpoint,
    model,
    quirks,
    // Options come from JSON files, which their type does not express.
    options: JSON.parse(JSON.stringify({ ...endpoint.options, ...request.options })),
    cacheKey: address.cacheKey,
    isRefused: (field) => refused.has(address, field),
  };
  return { params, call };
}

const hostOf = ({ baseURL }: Endpoint): string => (URL.canParse(baseURL) ? new URL(baseURL).hostname : "");

const addressOf = ({ messages }: ModelRequest, { baseURL, modelId }: Endpoint) => ({
  baseURL,
  modelId,
  cacheKey: messages[0]?.info.sessionId,
});

/** Returns whether to send the tools. A server that cannot be asked to call none gets none. */
function sendsTools({ model, tools, toolChoice }: ModelRequest, quirks: Quirks, isRefused: boolean): boolean {
  if (model.callsAsText) return false;
  return tools.length > 0 && (toolChoice === undefined || (quirks.takesToolChoice && !isRefused));
}

/** Describes the tools for a model that writes its calls as text. */
function describeTools({ model, tools }: ModelRequest): string[] {
  if (!model.callsAsText || tools.length === 0) return [];
  const described = tools.map(({ name, description, schema }) =>
    JSON.stringify({ name, description, parameters: schema }),
  );
  return [`${writtenCalls.trim()}\n\n${described.join("\n")}`];
}

const cachedTools = memoizePer<NonNullable<CallParams["tools"]>>();

function toTools({ tools }: ModelRequest, quirks: Quirks): NonNullable<CallParams["tools"]> {
  return cachedTools(tools, [quirks.schema], () =>
    tools.map(({ name, description, schema }) => ({
      type: "function",
      name,
      description,
      inputSchema: toolSchema(schema, quirks),
    })),
  );
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
