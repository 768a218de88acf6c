import type { Backpressure } from "../../base/async.ts";
import { isRecord } from "../../base/text/record.ts";
import {
  type CallPiece,
  type Chunk,
  contentOf,
  deltaOf,
  failOnError,
  firstChoice,
  parseChunk,
  usageIn,
} from "./chunk.ts";
import { invalidResponse, ProviderFailure } from "../failure.ts";
import { refusedCallOf } from "./refused-call.ts";
import { StreamedCalls } from "./streamed-calls.ts";

/** Whoever reads a stream beside the SDK. */
export interface StreamWatch {
  /** Text that goes around the SDK. Reading on waits for the room that it asks for. */
  readonly onText: (kind: "text" | "reasoning", text: string) => Backpressure;
  /** What goes wrong inside the stream. */
  readonly onFailure: (thrown: unknown) => void;
  /** The thought signature of a call, told before the call itself. */
  readonly onSignature: (providerCallId: string, signature: string) => void;
  /** Pieces of the provider's own record of what was thought, as they come. */
  readonly onReasoningDetails: (details: readonly unknown[]) => void;
  /** A usage as the provider sent it; a later one replaces it. */
  readonly onUsage: (usage: Chunk) => void;
}

/** The field of a delta that a text is added to: a name that the SDK reads, or the number of a call. */
type DeltaField = "content" | "reasoning" | "refusal" | number;

/** Collects chunks, joins neighbours that only add text to the same field, and writes them as events. */
export class ChunkMerger {
  isDone = false;
  /** The answer is whole: whatever happens to the connection now, it stands. */
  hasFinish = false;
  /** Whether anything of an answer came. */
  hasOutput = false;
  #output: string[] = [];
  #field: DeltaField | undefined;
  #texts: string[] = [];
  /** Whether something went to the SDK that text must not overtake. */
  #isThroughSdk = false;
  #backpressure: Backpressure;
  /** Whether the choice came that is the answer where there are several. */
  #hasFirstChoice = false;
  #hasDelta = false;
  readonly #calls: StreamedCalls;
  readonly #watch: StreamWatch;

  constructor(watch: StreamWatch) {
    this.#watch = watch;
    this.#calls = new StreamedCalls(watch.onSignature);
  }

  /** What the text that was told since the last call asks for. */
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
    const value = this.#withOneChoice(parseChunk(text));
    const usage = usageIn(value);
    if (usage !== undefined) this.#watch.onUsage(usage);
    failOnError(value);
    const choice = firstChoice(value);
    if (choice === undefined) return;
    this.#readDelta(choice);
    const { finish_reason: reason } = choice;
    if (typeof reason === "string" && reason !== "") this.#finish(reason);
  }

  /** Of several answers side by side the one that is numbered 0 counts, wherever it stands. */
  #withOneChoice(value: Chunk): Chunk {
    const choices: readonly unknown[] = Array.isArray(value.choices) ? value.choices : [];
    const at = choices.findIndex((choice) => isRecord(choice) && choice.index === 0);
    this.#hasFirstChoice ||= at !== -1;
    if (at > 0) return { ...value, choices: [choices[at]] };
    const isOfAnother = at === -1 && this.#hasFirstChoice && typeof firstChoice(value)?.index === "number";
    return isOfAnother ? { ...value, choices: [] } : value;
  }

  #readDelta(choice: Chunk): void {
    // MiniMax ends a stream with the whole message once more.
    if (this.#hasDelta && !isRecord(choice.delta)) return;
    this.#hasDelta ||= isRecord(choice.delta);
    const delta = deltaOf(choice);
    const details = delta.reasoning_details;
    if (Array.isArray(details)) this.#watch.onReasoningDetails(details);
    const { reasoning, text, refusal, calls } = contentOf(delta);
    this.#append("reasoning", reasoning);
    this.#append("content", text);
    this.#append("refusal", refusal);
    for (const piece of calls) this.#addCall(piece);
  }

  #addCall(piece: CallPiece): void {
    this.hasOutput = true;
    const { number, start, text } = this.#calls.add(piece);
    if (start !== undefined) this.#write(eventOf({ tool_calls: [start] }));
    this.#append(number, text);
  }

  /** Closes the answer, or throws where it was cut off. */
  end(): void {
    if (!this.hasFinish) this.#endWithoutReason();
    for (const call of this.#calls.unnamed()) this.#write(eventOf({ tool_calls: [call] }));
  }

  /** Ends with an error event, which is nothing but a sign: what went wrong is told elsewhere. */
  fail(): void {
    this.#write(`data: ${JSON.stringify({ error: { message: "failed" } })}\n\n`);
  }

  /** The events since the last call. */
  take(): string {
    this.#flush();
    const output = this.#output.join("");
    this.#output = [];
    return output;
  }

  /** "[DONE]" says that the answer is whole although no reason was given; a bare end does not. */
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
    const refused = this.#calls.isEmpty ? refusedCallOf(reason) : undefined;
    if (refused !== undefined) {
      const message = `The provider could not read a call of the model (${reason}).`;
      throw new ProviderFailure(invalidResponse(message, true), refused);
    }
    this.hasFinish = true;
    this.#write(eventOf({}, reason));
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
    this.#write(eventOf(delta));
  }

  #write(event: string): void {
    this.#flush();
    this.#isThroughSdk = true;
    this.#output.push(event);
  }
}

/** A chunk with only what the SDK reads, each field in the form that it expects. */
const eventOf = (delta: Chunk, reason: string | null = null): string =>
  `data: ${JSON.stringify({ choices: [{ index: 0, delta, finish_reason: reason }] })}\n\n`;
