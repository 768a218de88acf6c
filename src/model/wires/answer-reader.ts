import { excerpt } from "../../base/text/excerpt.ts";
import { parseJson } from "../../base/text/json.ts";
import { isRecord } from "../../base/text/record.ts";
import { parseRefusedCall } from "../answer/refused-call.ts";
import { invalidResponse, parseErrorAnswer, ProviderFailure } from "../failure.ts";
import type { AnswerNotes } from "./answer-notes.ts";

/** An unvalidated JSON object of a provider. */
export type Json = Record<string, unknown>;

/**
 * Reads the events of one answer and writes those that the SDK reads: only the fields that it needs, in the form that its
 * schema requires. Adjacent texts of one block become one event: the SDK needs about 40 microseconds for each.
 */
export abstract class AnswerReader {
  /** Whether the provider has nothing more to send. */
  isDone = false;
  /** Whether the answer is complete. Connection errors after this are ignored. */
  hasFinish = false;
  /** Whether the answer has any content. */
  hasOutput = false;
  readonly notes: AnswerNotes;
  readonly #output: string[] = [];
  #block: string | number | undefined;
  #texts: string[] = [];
  #toEvent: (text: string) => Json = () => ({});

  constructor(notes: AnswerNotes) {
    this.notes = notes;
  }

  /** Reads the data of an event. Throws a {@link ProviderFailure} if it is an error or no JSON object. */
  push(data: string): void {
    const text = data.trim();
    if (text === "" || this.isDone) return;
    if (text === "[DONE]") {
      this.isDone = true;
      return;
    }
    const value = parseJson(text);
    if (!isRecord(value)) {
      const message = `The provider sent something that is not a JSON object: ${excerpt(text, 200)}`;
      throw new ProviderFailure(invalidResponse(message, true));
    }
    this.read(value);
  }

  /** Completes the answer. Throws a {@link ProviderFailure} if it was cut off. */
  end(): void {
    if (!this.hasFinish) this.endWithoutFinish();
  }

  /** Returns and clears the events written since the last call. */
  take(): string {
    this.#flush();
    return this.#output.splice(0).join("");
  }

  protected abstract read(event: Json): void;

  protected endWithoutFinish(): void {
    const what = this.hasOutput ? "broke off before its answer was complete" : "answered with nothing";
    throw new ProviderFailure(invalidResponse(`The provider ${what}.`, true));
  }

  /** Appends text to a block. `toEvent` creates the event for the text that was appended in a row. */
  protected append(block: string | number, text: string, toEvent: (text: string) => Json): void {
    if (text === "") return;
    if (this.#block !== block) this.#flush();
    this.#block = block;
    this.#toEvent = toEvent;
    this.hasOutput = true;
    this.#texts.push(text);
  }

  protected write(event: Json): void {
    this.#flush();
    this.#output.push(`data: ${JSON.stringify(event)}\n\n`);
  }

  #flush(): void {
    if (this.#texts.length === 0) return;
    const event = this.#toEvent(this.#texts.splice(0).join(""));
    this.#block = undefined;
    this.#output.push(`data: ${JSON.stringify(event)}\n\n`);
  }
}

/** Creates the failure for an error in a stream. */
export function streamFailure(error: unknown): ProviderFailure {
  const body = JSON.stringify(error);
  const parsed = parseErrorAnswer({ status: undefined, header: () => null, body, now: 0 });
  return new ProviderFailure(parsed, parseRefusedCall(body));
}

export const textOf = (value: unknown): string => (typeof value === "string" ? value : "");
