import { isRecord } from "../../base/text/record.ts";
import { refusedCallForReason } from "../answer/refused-call.ts";
import { invalidResponse, ProviderFailure } from "../failure.ts";
import type { AnswerNotes } from "./answer-notes.ts";
import { AnswerReader } from "./answer-reader.ts";
import { StreamedCalls } from "./chat-calls.ts";
import {
  type CallFragment,
  type Chunk,
  deltaOf,
  failOnError,
  findUsage,
  firstChoice,
  parseContent,
} from "./chat-chunk.ts";

/** Reads the chunks of chat completions in the forms of all vendors. */
export class ChatReader extends AnswerReader {
  /** Whether a choice with index 0 was seen. */
  #hasFirstChoice = false;
  #hasDelta = false;
  readonly #calls: StreamedCalls;

  constructor(notes: AnswerNotes) {
    super(notes);
    this.#calls = new StreamedCalls((id, signature) => notes.signatures.set(id, signature));
  }

  override end(): void {
    super.end();
    for (const call of this.#calls.unnamed()) this.write(toChunk({ tool_calls: [call] }));
  }

  protected read(chunk: Chunk): void {
    const value = this.#keepFirstChoice(chunk);
    const usage = findUsage(value);
    if (usage !== undefined) this.notes.reportUsage(usage);
    failOnError(value);
    const choice = firstChoice(value);
    if (choice === undefined) return;
    this.#readDelta(choice);
    const { finish_reason: reason } = choice;
    if (typeof reason === "string" && reason !== "") this.#finish(reason);
  }

  /** "[DONE]" marks a complete answer even without a finish reason; the end of the stream alone does not. */
  protected override endWithoutFinish(): void {
    if (this.isDone && this.hasOutput) this.#finish("stop");
    else super.endWithoutFinish();
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

  #readDelta(choice: Chunk): void {
    // MiniMax ends a stream with the whole message once more.
    if (this.#hasDelta && !isRecord(choice.delta)) return;
    this.#hasDelta ||= isRecord(choice.delta);
    const delta = deltaOf(choice);
    this.notes.reasoning.add(delta);
    const { reasoning, reasoningField, text, refusal, calls } = parseContent(delta);
    this.notes.thoughtsField ??= reasoningField;
    this.append("reasoning", reasoning, (text) => toChunk({ reasoning: text }));
    this.append("content", text, (text) => toChunk({ content: text }));
    this.append("refusal", refusal, (text) => toChunk({ refusal: text }));
    for (const fragment of calls) this.#addCall(fragment);
  }

  #addCall(fragment: CallFragment): void {
    this.hasOutput = true;
    const { number, start, text } = this.#calls.add(fragment);
    if (start !== undefined) this.write(toChunk({ tool_calls: [start] }));
    this.append(number, text, (text) =>
      toChunk({ tool_calls: [{ index: number, function: { arguments: text } }] }),
    );
  }

  #finish(reason: string): void {
    const refused = this.#calls.isEmpty ? refusedCallForReason(reason) : undefined;
    if (refused !== undefined) {
      const message = `The provider could not read a call of the model (${reason}).`;
      throw new ProviderFailure(invalidResponse(message, true), refused);
    }
    this.hasFinish = true;
    this.write(toChunk({}, reason));
  }
}

/** Creates a chunk with only the fields that the SDK reads. */
const toChunk = (delta: Chunk, reason: string | null = null): Chunk => ({
  choices: [{ index: 0, delta, finish_reason: reason }],
});
