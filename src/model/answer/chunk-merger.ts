import type { Backpressure } from "../../base/async.ts";
import { isRecord } from "../../base/text/record.ts";
import {
  type CallFragment,
  type Chunk,
  parseContent,
  deltaOf,
  failOnError,
  firstChoice,
  parseChunk,
  findUsage,
} from "./chunk.ts";
import { invalidResponse, ProviderFailure } from "../failure.ts";
import { refusedCallForReason } from "./refused-call.ts";
import { StreamedCalls } from "./streamed-calls.ts";

/** Callbacks for stream content that does not pass through the SDK. */
export interface StreamWatch {
  /** Receives text that bypasses the SDK. Reading pauses until the returned promise resolves. */
  readonly onText: (kind: "text" | "reasoning", text: string) => Backpressure;
  /** Receives errors of the stream. */
  readonly onFailure: (thrown: unknown) => void;
  /** Receives the thought signature of a call, before the call itself. */
  readonly onSignature: (providerCallId: string, signature: string) => void;
  /** Receives fragments of the provider's `reasoning_details`. */
  readonly onReasoningDetails: (details: readonly unknown[]) => void;
  /** Receives usage as the provider sent it. A later one replaces an earlier one. */
  readonly onUsage: (usage: Chunk) => void;
}

/** The field of a delta that text is appended to: a field name that the SDK reads, or the number of a call. */
type DeltaField = "content" | "reasoning" | "refusal" | number;

/** Merges consecutive chunks that append text to the same field, and writes them as events. */
export class ChunkMerger {
  isDone = false;
  /** Whether the answer is complete. Connection errors after this are ignored. */
  hasFinish = false;
  /** Whether the answer has any content. */
  hasOutput = false;
  #output: string[] = [];
  #field: DeltaField | undefined;
  #texts: string[] = [];
  /** Whether an event went to the SDK. Text after it must take the same way, to stay in order. */
  #isThroughSdk = false;
  #backpressure: Backpressure;
  /** Whether a choice with index 0 was seen. */
  #hasFirstChoice = false;
  #hasDelta = false;
  readonly #calls: StreamedCalls;
  readonly #watch: StreamWatch;

  constructor(watch: StreamWatch) {
    this.#watch = watch;
    this.#calls = new StreamedCalls(watch.onSignature);
  }

  /** Returns and clears the backpressure of the text emitted since the last call. */
  takeBackpressure(): Backpressure {
    const backpressure = this.#backpressure;
    this.#backpressure = undefined;
    return backpressure;
  }

  push(data: string): void {
    const text = data.trim();
    if (text === "" || this.isDone) return;
    if (text === "[DONE]") {
      this.isDone = true;
      return;
    }
    const value = this.#keepFirstChoice(parseChunk(text));
    const usage = findUsage(value);
    if (usage !== undefined) this.#watch.onUsage(usage);
    failOnError(value);
    const choice = firstChoice(value);
    if (choice === undefined) return;
    this.#pushDelta(choice);
    const { finish_reason: reason } = choice;
    if (typeof reason === "string" && reason !== "") this.#finish(reason);
  }

  /** Keeps only the choice with index 0 where the provider sends several. */
  #keepFirstChoice(value: Chunk): Chunk {
    const choices: readonly unknown[] = Array.isArray(value.choices) ? value.choices : [];
    const at = choices.findIndex((choice) => isRecord(choice) && choice.index === 0);
    this.#hasFirstChoice ||= at !== -1;
    if (at > 0) return { ...value, choices: [choices[at]] };
    const isOfAnother = at === -1 && this.#hasFirstChoice && typeof firstChoice(value)?.index === "number";
    return isOfAnother ? { ...value, choices: [] } : value;
  }

  #pushDelta(choice: Chunk): void {
    // MiniMax ends a stream with the whole message once more.
    if (this.#hasDelta && !isRecord(choice.delta)) return;
    this.#hasDelta ||= isRecord(choice.delta);
    const delta = deltaOf(choice);
    const details = delta.reasoning_details;
    if (Array.isArray(details)) this.#watch.onReasoningDetails(details);
    const { reasoning, text, refusal, calls } = parseContent(delta);
    this.#append("reasoning", reasoning);
    this.#append("content", text);
    this.#append("refusal", refusal);
    for (const piece of calls) this.#addCall(piece);
  }

  #addCall(piece: CallFragment): void {
    this.hasOutput = true;
    const { number, start, text } = this.#calls.add(piece);
    if (start !== undefined) this.#write(toEvent({ tool_calls: [start] }));
    this.#append(number, text);
  }

  /** Completes the answer. Throws a {@link ProviderFailure} if it was cut off. */
  end(): void {
    if (!this.hasFinish) this.#endWithoutReason();
    for (const call of this.#calls.unnamed()) this.#write(toEvent({ tool_calls: [call] }));
  }

  /** Writes an error event. It only marks the failure; `onFailure` receives the error itself. */
  fail(): void {
    this.#write(`data: ${JSON.stringify({ error: { message: "failed" } })}\n\n`);
  }

  /** Returns and clears the events written since the last call. */
  take(): string {
    this.#flush();
    const output = this.#output.join("");
    this.#output = [];
    return output;
  }

  /** "[DONE]" marks a complete answer even without a finish reason; the end of the stream alone does not. */
  #endWithoutReason(): void {
    if (!this.isDone) {
      const what = this.hasOutput ? "broke off before its answer was complete" : "answered with nothing";
      throw new ProviderFailure(invalidResponse(`The provider ${what}.`, true));
    }
    if (!this.hasOutput)
      throw new ProviderFailure(invalidResponse("The provider answered with nothing.", true));
    this.#finish("stop");
  }

  #finish(reason: string): void {
    const refused = this.#calls.isEmpty ? refusedCallForReason(reason) : undefined;
    if (refused !== undefined) {
      const message = `The provider could not read a call of the model (${reason}).`;
      throw new ProviderFailure(invalidResponse(message, true), refused);
    }
    this.hasFinish = true;
    this.#write(toEvent({}, reason));
  }

  #append(field: DeltaField, text: string): void {
    if (text === "") return;
    if (this.#field !== field) this.#flush();
    this.#field = field;
    this.hasOutput = true;
    this.#texts.push(text);
  }

  #flush(): void {
    const field = this.#field;
    if (field === undefined) return;
    const text = this.#texts.join("");
    this.#field = undefined;
    this.#texts = [];
    if (!this.#isThroughSdk && (field === "content" || field === "reasoning")) {
      this.#backpressure =
        this.#watch.onText(field === "content" ? "text" : "reasoning", text) ?? this.#backpressure;
      return;
    }
    const delta =
      typeof field === "number"
        ? { tool_calls: [{ index: field, function: { arguments: text } }] }
        : { [field]: text };
    this.#write(toEvent(delta));
  }

  #write(event: string): void {
    this.#flush();
    this.#isThroughSdk = true;
    this.#output.push(event);
  }
}

/** Creates a chunk with only the fields that the SDK reads. */
const toEvent = (delta: Chunk, reason: string | null = null): string =>
  `data: ${JSON.stringify({ choices: [{ index: 0, delta, finish_reason: reason }] })}\n\n`;
