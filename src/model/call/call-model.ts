import { wrapLanguageModel } from "ai";
import { orWhenAborted } from "../../base/async.ts";
import type { Log } from "../../base/log.ts";
import { memoizePer } from "../../base/memoize.ts";
import { estimateText } from "../../message/estimate.ts";
import { estimateRequest } from "../../message/estimate-request.ts";
import type { AgentError, FinishReason } from "../../message/message.ts";
import type { Tokens } from "../../message/part.ts";
import { cancelled } from "../cancelled.ts";
import { findRefusedCall, ProviderFailure, redact, stallError, toAgentError } from "../failure.ts";
import type { ModelRequest, StepEnd, StepEvent } from "../model.ts";
import type { Quirks } from "../quirks.ts";
import { toolSchema } from "../request/tool-schema.ts";
import { AnswerNotes } from "../wires/answer-notes.ts";
import type { CallContext, CallParams, Endpoint, StreamPart } from "../wires/wire.ts";
import { quirksFor, Wires } from "../wires/wires.ts";
import { toPrompt } from "./prompt.ts";
import { StepEvents } from "./step-events.ts";

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
  const call = new Call(request, endpoint, take);
  const { provider, model } = request.model.ref;
  const events = new StepEvents(call.notes, { provider, model, api: endpoint.api ?? "chat" });
  const failure = await call.run(async () => {
    const stream = await openStream(request, endpoint, wires, call);
    await call.readParts(stream, (part) => {
      call.emit(events.add(part));
      return events.endReason === undefined;
    });
    if (events.endReason === undefined) throw new Error("the answer ended without an end");
  });
  call.emit(events.close());
  const { metadata, endReason } = events;
  const finish = (reason: FinishReason): StepEnd & { type: "finish" } => ({
    type: "finish",
    reason,
    tokens: call.notes.usage ?? estimate(events.output, request),
    ...(call.notes.usage === undefined && { estimated: true }),
    ...(metadata && { metadata }),
  });
  if (failure === undefined) return finish(endReason ?? "unknown");
  const refused = findRefusedCall(failure.thrown);
  if (refused !== undefined && request.returnsRefusedCalls !== false && !request.signal.aborted) {
    log.debug("provider refused a call", { provider: endpoint.provider, tool: refused.tool });
    call.emit(events.emitRefusedCall(refused));
    return { ...finish("tool-calls"), refusedCall: true };
  }
  const error = request.signal.aborted ? cancelled() : toRedactedError(failure.thrown, endpoint);
  const { code, status } = error;
  log.debug("model call failed", { provider: endpoint.provider, code, status });
  // Complete calls remain and are sent back with their reasoning.
  return { type: "failed", error, ...(metadata && { metadata }) };
}

/** The provider sent nothing for longer than the limit. */
class StreamTimeoutError extends Error {}

/** The connection, the timeout and the consumer of one call. */
class Call {
  readonly notes: AnswerNotes;
  readonly #request: ModelRequest;
  readonly #connection = new AbortController();
  readonly #silence: NodeJS.Timeout;
  readonly #take: (event: StepEvent) => void;
  #isTaking = false;
  #consumerError: { readonly thrown: unknown } | undefined;

  constructor(request: ModelRequest, { stallMs }: Endpoint, take: (event: StepEvent) => void) {
    this.#request = request;
    this.#take = take;
    this.#silence = setTimeout(() => {
      // Time that the consumer needs does not count.
      if (this.#isTaking) this.#silence.refresh();
      else this.#connection.abort(new StreamTimeoutError());
    }, stallMs);
    this.notes = new AnswerNotes(() => this.#silence.refresh());
  }

  /** Aborted when the request is aborted or the provider is silent for too long. */
  get signal(): AbortSignal {
    return this.#connection.signal;
  }

  /** Runs the call and closes its connection. Resolves with an error of the call; rejects with an error of the consumer. */
  async run(step: () => Promise<void>): Promise<{ readonly thrown: unknown } | undefined> {
    const { signal } = this.#request;
    const abort = () => this.#connection.abort(signal.reason);
    if (signal.aborted) abort();
    signal.addEventListener("abort", abort, { once: true });
    try {
      await step();
      return undefined;
    } catch (thrown) {
      this.#connection.abort();
      if (this.#consumerError !== undefined) throw this.#consumerError.thrown;
      const { reason }: { reason: unknown } = this.signal;
      return { thrown: reason instanceof StreamTimeoutError ? reason : (this.notes.failure ?? thrown) };
    } finally {
      clearTimeout(this.#silence);
      signal.removeEventListener("abort", abort);
    }
  }

  emit(events: readonly StepEvent[]): void {
    try {
      for (const event of events) this.#take(event);
    } catch (thrown) {
      this.#consumerError = { thrown };
      throw thrown;
    }
  }

  /** Reads parts until `read` returns false. The end of an answer that broke off is not read. */
  async readParts(stream: ReadableStream<StreamPart>, read: (part: StreamPart) => boolean): Promise<void> {
    const reader = stream.getReader();
    const cancel = () => void reader.cancel().catch(() => {});
    this.signal.addEventListener("abort", cancel, { once: true });
    for (;;) {
      const { done, value: part } = await reader.read();
      this.signal.throwIfAborted();
      const isEnd = done || part.type === "finish" || part.type === "error";
      if (isEnd && this.notes.failure !== undefined) throw this.notes.failure;
      if (done) return;
      if (part.type === "error") throw part.error;
      if (!read(part)) return;
      if (this.#request.waitUntilReady === undefined) continue;
      this.#isTaking = true;
      await this.#request.waitUntilReady();
      this.#isTaking = false;
      this.#silence.refresh();
      this.signal.throwIfAborted();
    }
  }
}

async function openStream(
  request: ModelRequest,
  endpoint: Endpoint,
  wires: Wires,
  { signal, notes }: Call,
): Promise<ReadableStream<StreamPart>> {
  if (!/^https?:\/\//.test(endpoint.baseURL) || !URL.canParse(endpoint.baseURL)) {
    throw new ProviderFailure(invalidAddressError(endpoint));
  }
  const tooSmall = checkContextSize(request);
  if (tooSmall !== undefined) throw new ProviderFailure(tooSmall);
  signal.throwIfAborted();
  const wire = await wires.for(endpoint, signal, notes);
  for (;;) {
    try {
      const { params, context } = toCallParams(request, endpoint, wires, signal);
      const model = wrapLanguageModel({
        model: wire.model,
        middleware: { transformParams: async () => wire.adapt(params, context) },
      });
      const opened = model.doStream(params);
      const stream = await orWhenAborted(Promise.resolve(opened), signal, undefined);
      signal.throwIfAborted();
      if (stream !== undefined) return stream.stream;
    } catch (thrown) {
      signal.throwIfAborted();
      // Sends the request again without the field that the server rejected.
      const error = toAgentError(notes.failure ?? thrown, endpoint);
      if (!wires.refused.add(addressOf(request, endpoint), error)) throw thrown;
      notes.failure = undefined;
    }
  }
}

/** Returns the parameters of the SDK's call, and what the wire needs to know besides. */
function toCallParams(
  request: ModelRequest,
  endpoint: Endpoint,
  { refused }: Wires,
  signal: AbortSignal,
): { params: CallParams; context: CallContext } {
  const { model, messages } = request;
  const address = addressOf(request, endpoint);
  const quirks = quirksFor(endpoint);
  const system = request.system.join("\n\n");
  const prompt = toPrompt(messages, {
    model,
    api: endpoint.api ?? "chat",
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
    ...(maxOutputTokens !== undefined && { maxOutputTokens }),
    ...(model.abilities.temperature && temperature !== undefined && { temperature }),
    ...(model.abilities.temperature && topP !== undefined && { topP }),
    abortSignal: signal,
  };
  const context: CallContext = {
    model,
    quirks,
    // Options come from JSON files, which their type does not express.
    options: JSON.parse(JSON.stringify({ ...endpoint.options, ...request.options })),
    cacheKey: address.cacheKey,
    isRefused: (field) => refused.has(address, field),
  };
  return { params, context };
}

const addressOf = ({ messages }: ModelRequest, { baseURL, modelId }: Endpoint) => ({
  baseURL,
  modelId,
  cacheKey: messages[0]?.info.sessionId,
});

/** Returns whether to send the tools. A server that cannot be asked to call none gets none. */
function sendsTools({ tools, toolChoice }: ModelRequest, quirks: Quirks, isRefused: boolean): boolean {
  return tools.length > 0 && (toolChoice === undefined || (quirks.takesToolChoice && !isRefused));
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
