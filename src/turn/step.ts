import { errorFields } from "../base/error-fields.ts";
import { sleep } from "../base/async.ts";
import type { Log } from "../base/log.ts";
import { type MessageId, newPartId } from "../message/ids.ts";
import type { AgentError, AssistantInfo, FinishReason, Message, SentRequest } from "../message/message.ts";
import type { FileChange, ToolPart } from "../message/part.ts";
import { findWrittenCalls, type WrittenCalls } from "../model/answer/written-calls/find-calls.ts";
import type { Medium, Model, ModelRequest, Models, StepEnd, StepEvent } from "../model/model.ts";
import { listMedia, omitMedia } from "../model/request/media.ts";
import { mayRejectMedia, type RefusedMedia, rejectsAllMedia } from "../model/request/refused-media.ts";
import { decideRetry, type RetryPolicy } from "../model/retry.ts";
import { AnswerWriter, type CallEvent } from "./answer-writer.ts";
import { refusedMediaText } from "./refused-media-text.ts";
import { RepeatedTextError } from "./text-loop.ts";
import type { ModelCall } from "../tool-calls/repair/repair-call.ts";
import type { CallOutcome } from "../tool-calls/tool-call-record.ts";
import type { CallOrigin, ToolRunner } from "../tool-calls/tool-runner.ts";
import type { Transcript } from "../conversation/transcript.ts";
import { noTokens } from "../conversation/turn-result.ts";
import type { StepOutcome } from "../conversation/step-outcome.ts";

export interface StepDeps {
  transcript: Transcript;
  models: Models;
  runner: ToolRunner;
  retryPolicy: RetryPolicy;
  log: Log;
  /** Media that models refused in this session, by model. */
  refusedMedia: RefusedMedia;
  /** Shows the user a warning. */
  warn(text: string): void;
  /** Resolves when the client can receive more. */
  waitUntilReady(): Promise<void>;
}

export interface StepInput {
  /** The user message that this step helps to answer. */
  parentId: MessageId;
  agent: string;
  model: Model;
  request: Omit<ModelRequest, "model" | "signal">;
  /** The request compared with earlier ones, to be stored with the answer. */
  sent: SentRequest;
  /** Compares the request again if the provider rejected a part of it, which was omitted. */
  readonly describeSent: (messages: readonly Message[], model: Model, omitsThoughts: boolean) => SentRequest;
  /** Retries of an empty answer. */
  emptyRetries: number;
}

/** Makes one model call: streams it into a new assistant message and runs its tool calls while it streams. */
export async function runStep(deps: StepDeps, input: StepInput, signal: AbortSignal): Promise<StepOutcome> {
  const { transcript } = deps;
  // Copied, so that retries do not contain the answer that starts here.
  const request = { ...input.request, messages: [...input.request.messages] };
  let info: AssistantInfo = {
    id: transcript.newMessageId(),
    sessionId: transcript.sessionId,
    role: "assistant",
    parentId: input.parentId,
    time: { created: Date.now() },
    agent: input.agent,
    model: input.model.ref,
    cost: 0,
    tokens: noTokens,
    sent: input.sent,
  };
  transcript.addMessage(info);
  transcript.putPart(info.id, { id: newPartId(), type: "step-start" });
  const attempt = new Attempt(deps, info.id, signal);
  const streamed = await streamNonEmpty(deps, { ...input, request }, attempt, signal);
  const ms = Date.now() - info.time.created;
  const calls = await attempt.settle(streamed.type === "failed" ? "interrupted" : "cancelled");

  const tokens = streamed.type === "finish" ? streamed.tokens : noTokens;
  const cost = deps.models.costOf(input.model, tokens) + attempt.repeatedCost;
  const outcome = toOutcome(streamed, calls, attempt, input.request, signal);
  const { provider, model } = input.model.ref;
  const used = { input: tokens.input, cached: tokens.cache.read, output: tokens.output };
  deps.log.info("model call ended", { model: `${provider}/${model}`, ms, ...used, cost, end: outcome.end });
  const sent = describeAnswered(input, request.messages, attempt, streamed);
  info = { ...info, tokens, cost, sent, finish: toFinish(outcome, streamed) };
  if (outcome.end === "failed") info.error = outcome.error;
  const { changes } = calls;
  if (changes.length > 0) transcript.putPart(info.id, { id: newPartId(), type: "patch", changes });
  const reason = info.finish ?? "unknown";
  const { metadata } = streamed;
  transcript.putPart(info.id, {
    id: newPartId(),
    type: "step-finish",
    reason,
    tokens,
    cost,
    ...(calls.count > 0 && metadata && { providerMetadata: metadata }),
  });
  await transcript.complete(info);
  return { ...outcome, tokens, cost, isEstimated: streamed.type === "finish" && streamed.estimated === true };
}

/** Returns the comparison of the request that was answered, which may lack what the provider rejected. */
function describeAnswered(
  { sent, model, describeSent }: StepInput,
  messages: readonly Message[],
  { omittedMedia }: Attempt,
  streamed: StepEnd,
): SentRequest {
  if (streamed.type === "failed") return sent;
  const { omitsThoughts = false } = streamed;
  const isKnown = omittedMedia.length === 0 && omitsThoughts === (sent.omits?.includes("thoughts") === true);
  return isKnown ? sent : describeSent(messages, omitMedia(model, omittedMedia), omitsThoughts);
}

/** Temperature increase per retry of an empty answer, so that the result may differ. */
const temperatureStep = 0.1;
const maxTemperature = 1;

/** Retries while the answer is empty. The cost includes all of these calls. */
async function streamNonEmpty(
  deps: StepDeps,
  input: StepInput,
  attempt: Attempt,
  signal: AbortSignal,
): Promise<StepEnd> {
  const attempts = Math.min(deps.retryPolicy.attempts, input.emptyRetries + 1);
  const policy = { ...deps.retryPolicy, attempts };
  let { request } = input;
  for (let number = 1; ; number++) {
    const streamed = await streamWithMediaFallback(deps, { ...input, request }, attempt, signal);
    if (signal.aborted || streamed.type === "failed" || !attempt.isEmpty(streamed, request)) return streamed;
    const decision = decideRetry(number, emptyAnswer, { random: Math.random, now: Date.now(), policy });
    if (!decision.retry) return streamed;
    attempt.repeatedCost += deps.models.costOf(input.model, streamed.tokens);
    const { delayMs } = decision;
    announceRetry(deps, attempt.messageId, { attempt: number, attempts, error: emptyAnswer, delayMs });
    await sleep(delayMs, signal);
    if (signal.aborted) return streamed;
    await attempt.restart();
    request = raiseTemperature(request);
  }
}

const emptyAnswer: AgentError = {
  code: "invalid-response",
  message: "The model's answer was empty.",
  retryable: true,
};

function raiseTemperature(request: StepInput["request"]): StepInput["request"] {
  const { temperature } = request;
  if (temperature === undefined || temperature >= maxTemperature) return request;
  // Rounded to avoid binary fractions.
  return {
    ...request,
    temperature: Math.min(maxTemperature, Math.round((temperature + temperatureStep) * 100) / 100),
  };
}

/** Retries once without media if the model refuses a request that contains media. */
async function streamWithMediaFallback(
  deps: StepDeps,
  input: StepInput,
  attempt: Attempt,
  signal: AbortSignal,
): Promise<StepEnd> {
  const { request } = input;
  const model = deps.refusedMedia.applyTo(input.model);
  const streamed = await streamWithRetries(deps, { ...input, model }, attempt, signal);
  if (streamed.type !== "failed" || signal.aborted || attempt.hasCalls) return streamed;
  const media = mayRejectMedia(streamed.error) ? listMedia(request.messages, model) : [];
  if (media.length === 0) return streamed;
  const { code, status } = streamed.error;
  deps.log.warn("model refused media, retrying without", { code, status });
  await attempt.restart();
  const second = await streamWithRetries(deps, { ...input, model: omitMedia(model, media) }, attempt, signal);
  if (signal.aborted) return second;
  if (second.type === "failed" && !attempt.hasCalls) return streamed;
  const { error } = streamed;
  if (rejectsAllMedia(error)) deps.models.refuses(model, media);
  else deps.refusedMedia.add(model, media);
  deps.warn(refusedMediaText(model, media, error));
  attempt.omittedMedia = media;
  return second;
}

async function streamWithRetries(
  deps: StepDeps,
  input: StepInput,
  attempt: Attempt,
  signal: AbortSignal,
): Promise<StepEnd> {
  for (let number = 1; ; number++) {
    const waitUntilReady = () => deps.waitUntilReady();
    const request = { ...input.request, model: input.model, signal, waitUntilReady };
    const streamed = await attempt.stream((take) => deps.models.call(request, take));
    if (streamed.type === "finish" || signal.aborted) return streamed;
    if (attempt.hasCalls) {
      deps.log.warn("model call failed after its tool calls", { code: streamed.error.code });
      return streamed;
    }
    const policy = deps.retryPolicy;
    const decision = decideRetry(number, streamed.error, { random: Math.random, now: Date.now(), policy });
    if (!decision.retry) return { type: "failed", error: decision.error };
    const { delayMs } = decision;
    const { attempts } = policy;
    announceRetry(deps, attempt.messageId, {
      attempt: number,
      attempts,
      error: streamed.error,
      delayMs,
    });
    await sleep(delayMs, signal);
    if (signal.aborted) return streamed;
    await attempt.restart();
  }
}

function announceRetry(
  deps: StepDeps,
  messageId: MessageId,
  retry: { attempt: number; attempts: number; error: AgentError; delayMs: number },
): void {
  const { attempt, attempts, error, delayMs } = retry;
  deps.log.warn("model call failed, retrying", { attempt, code: error.code, delayMs });
  deps.transcript.putPart(messageId, {
    id: newPartId(),
    type: "retry",
    attempt,
    attempts,
    error: error.message,
    delayMs,
    time: Date.now(),
  });
}

/** One streamed answer: its text goes to the writer, its tool calls to the runner. */
class Attempt {
  readonly messageId: MessageId;
  readonly #deps: StepDeps;
  readonly #signal: AbortSignal;
  readonly #answer: AnswerWriter;
  readonly #announced = new Map<string, ToolPart>();
  /** Metadata of unfinished calls that contain other calls. */
  readonly #wrappers = new Map<string, CallOrigin>();
  readonly #running: Promise<CallOutcome>[] = [];
  /** Cost of the calls with empty answers, in US dollars. */
  repeatedCost = 0;
  /** Media that the provider rejected, so that the request was sent again without them. */
  omittedMedia: readonly Medium[] = [];

  constructor(deps: StepDeps, messageId: MessageId, signal: AbortSignal) {
    this.#deps = deps;
    this.messageId = messageId;
    this.#signal = signal;
    const { transcript } = deps;
    const takeCall = (event: CallEvent) => this.#takeCall(event);
    this.#answer = new AnswerWriter({ transcript, messageId, signal, takeCall });
  }

  /** Whether a complete tool call has started. Its result must be kept, so the step is not retried. */
  get hasCalls(): boolean {
    return this.#running.length > 0;
  }

  /** Whether the answer ended normally without text or a tool call. */
  isEmpty(streamed: StepEnd & { type: "finish" }, request: StepInput["request"]): boolean {
    const isSilent = endsWell(streamed.reason) && !this.hasCalls && !this.#answer.hasVisibleText;
    return isSilent && this.findWrittenCalls(request) === undefined;
  }

  /** Finds tool calls written as text, or in the reasoning if there is no text. */
  findWrittenCalls(request: StepInput["request"]): WrittenCalls | undefined {
    const parts = this.#deps.transcript.find(this.messageId)?.parts ?? [];
    const kind = this.#answer.hasVisibleText ? "text" : "reasoning";
    const last = parts.findLast((part) => part.type === kind);
    return last?.type === "text" || last?.type === "reasoning"
      ? findWrittenCalls(last.text, request)
      : undefined;
  }

  /** Streams the call; stops it if the model repeats itself. */
  async stream(call: (take: (event: StepEvent) => void) => Promise<StepEnd>): Promise<StepEnd> {
    try {
      const end = await call(this.#answer.take);
      if (end.type === "finish") this.#answer.finish();
      return end;
    } catch (thrown) {
      if (thrown instanceof RepeatedTextError)
        return { type: "failed", error: repetitionError(thrown.message) };
      throw thrown;
    }
  }

  async restart(): Promise<void> {
    await this.#abandonOpenCalls("interrupted");
    this.#answer.restart();
  }

  /** Waits for all tool calls and abandons incomplete ones. */
  async settle(reason: "cancelled" | "interrupted"): Promise<CallResults> {
    this.#answer.end();
    await this.#abandonOpenCalls(reason);
    const outcomes = await Promise.all(this.#running);
    return {
      count: outcomes.length,
      stops: outcomes.flatMap(({ stop }) => stop ?? []),
      changes: outcomes.flatMap((outcome) => outcome.changes),
    };
  }

  #takeCall(event: CallEvent): void {
    if (event.type === "call") return this.#start(event);
    // The contained calls are shown instead of their wrapper.
    if (this.#deps.runner.isWrapper(event.tool)) this.#wrappers.set(event.providerCallId, event);
    else this.#announce(event.tool, event.providerCallId, event);
  }

  /** Shows a call while the model still writes its arguments. */
  #announce(tool: string, providerCallId: string, origin?: CallOrigin): ToolPart {
    const announced = this.#announced.get(providerCallId);
    if (announced !== undefined) return announced;
    this.#answer.end();
    const part = this.#deps.runner.announce(this.messageId, tool, providerCallId, origin);
    this.#announced.set(providerCallId, part);
    return part;
  }

  #start(call: CallEvent & { type: "call" }): void {
    const { tool, input, problem, raw, isMalformed, providerCallId } = call;
    const written = { tool, input, problem, malformed: isMalformed === true ? raw : undefined };
    if (this.#deps.runner.isWrapper(tool))
      return this.#startContained(written, providerCallId, this.#wrappers.get(providerCallId));
    const part = this.#announce(tool, providerCallId);
    this.#announced.delete(providerCallId);
    this.#run(part, written);
  }

  /** Runs the calls inside a call. Each has an id, so that its result is paired with it. */
  #startContained(call: ModelCall, providerCallId: string, origin: CallOrigin | undefined): void {
    for (const [index, contained] of this.#deps.runner.unwrap(call).entries()) {
      const [id, own] = index === 0 ? [providerCallId, origin] : [`${providerCallId}_${index + 1}`];
      const { through } = contained;
      this.#run(this.#announce(contained.tool, id, { ...own, through }), contained);
      this.#announced.delete(id);
    }
  }

  #run(part: ToolPart, call: ModelCall): void {
    const running = this.#deps.runner.run(this.messageId, part, call, this.#signal);
    running.catch((error: unknown) =>
      this.#deps.log.error("tool call failed unexpectedly", errorFields(error)),
    );
    this.#running.push(running);
  }

  async #abandonOpenCalls(reason: "cancelled" | "interrupted"): Promise<void> {
    const open = [...this.#announced.values()];
    this.#announced.clear();
    for (const part of open) await this.#deps.runner.abandon(this.messageId, part, reason);
  }
}

/** Not retryable: a retry would cost the same and fail the same way. */
export function repetitionError(message: string): AgentError {
  return { code: "invalid-response", message, retryable: false };
}

const repeatedCallsText =
  "The model repeats itself: it made the same calls with the same results after a repetition was refused, so the turn was stopped. Rephrase the request, or choose another model.";

interface CallResults {
  count: number;
  stops: readonly NonNullable<CallOutcome["stop"]>[];
  changes: FileChange[];
}

type OutcomeEnd =
  | { end: Exclude<StepOutcome["end"], "failed" | "leaked" | "calls"> }
  | { end: "leaked"; calls: WrittenCalls }
  | { end: "calls"; hasRefusedCall: boolean }
  | { end: "failed"; error: AgentError };

function toOutcome(
  streamed: StepEnd,
  calls: CallResults,
  attempt: Attempt,
  request: StepInput["request"],
  signal: AbortSignal,
): OutcomeEnd {
  if (signal.aborted || calls.stops.includes("cancelled")) return { end: "cancelled" };
  if (calls.stops.includes("rejected")) return { end: "rejected" };
  if (calls.stops.includes("looping")) return { end: "failed", error: repetitionError(repeatedCallsText) };
  if (calls.count > 0) {
    const hasRefusedCall = streamed.type === "finish" && streamed.refusedCall === true;
    return { end: "calls", hasRefusedCall };
  }
  if (streamed.type === "failed") return { end: "failed", error: streamed.error };
  switch (streamed.reason) {
    case "length":
      return { end: "outputLimit" };
    case "content-filter":
    case "refusal":
      return { end: "refused" };
    case "stop":
    case "tool-calls":
    case "unknown":
    case "error":
    case "cancelled":
      return toTextOutcome(streamed, attempt, request);
  }
}

function toTextOutcome(
  streamed: StepEnd & { type: "finish" },
  attempt: Attempt,
  request: StepInput["request"],
): OutcomeEnd {
  if (attempt.isEmpty(streamed, request)) return { end: "empty" };
  const calls = attempt.findWrittenCalls(request);
  return calls === undefined ? { end: "finished" } : { end: "leaked", calls };
}

/** Whether the model ended the answer itself. */
const endsWell = (reason: FinishReason): boolean =>
  reason !== "length" && reason !== "content-filter" && reason !== "refusal";

function toFinish(outcome: OutcomeEnd, streamed: StepEnd): FinishReason {
  if (outcome.end === "cancelled") return "cancelled";
  if (outcome.end === "calls" || outcome.end === "rejected") return "tool-calls";
  if (outcome.end === "finished" || outcome.end === "empty" || outcome.end === "leaked") return "stop";
  return streamed.type === "finish" ? streamed.reason : "error";
}
