import { randomUuid } from "../../base/text/hash.ts";
import { parseJson } from "../../base/text/json.ts";
import { isRecord } from "../../base/text/record.ts";
import { unnamedTool } from "../answer/call-arguments.ts";
import { refusedCallForReason } from "../answer/refused-call.ts";
import { invalidResponse, ProviderFailure } from "../failure.ts";
import type { AnswerNotes } from "./answer-notes.ts";
import { AnswerReader } from "./answer-reader.ts";
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

interface StreamedCall {
  readonly number: number;
  /** As the server sent it. */
  readonly index: number | undefined;
  id: string;
  name: string;
  /** The arguments so far. */
  text: string;
}

/** The result of adding a fragment: the start of a call, if it begins one, and more arguments. */
interface AddedFragment {
  readonly number: number;
  readonly start: Chunk | undefined;
  readonly text: string;
}

/**
 * Assigns fragments to calls and numbers the calls in order. Servers differ:
 *
 * - The index may be missing, or 0 for every call.
 * - The id may be missing, repeated with each fragment, or new for each fragment.
 * - The name may come late or more than once.
 */
class StreamedCalls {
  readonly #calls: StreamedCall[] = [];
  readonly #ids = new Set<string>();
  readonly #onSignature: (id: string, signature: string) => void;

  constructor(onSignature: (id: string, signature: string) => void) {
    this.#onSignature = onSignature;
  }

  get isEmpty(): boolean {
    return this.#calls.length === 0;
  }

  add(fragment: CallFragment): AddedFragment {
    const call = this.#findCall(fragment) ?? this.#begin(fragment);
    const { number } = call;
    if (fragment.signature !== undefined) this.#onSignature(call.id, fragment.signature);
    const wasNamed = call.name !== "";
    if (!wasNamed) call.name = fragment.name;
    call.text += fragment.arguments;
    if (wasNamed) return { number, start: undefined, text: fragment.arguments };
    if (call.name === "") return { number, start: undefined, text: "" };
    return { number, start: toStartChunk(call, call.name), text: call.text };
  }

  /** Returns the calls that never got a name, with their arguments. */
  unnamed(): Chunk[] {
    return this.#calls
      .filter(({ name }) => name === "")
      .map((call) => ({
        ...toStartChunk(call, unnamedTool),
        function: { name: unnamedTool, arguments: call.text },
      }));
  }

  /** Returns the call that a fragment continues, or undefined if it begins a new one. */
  #findCall(fragment: CallFragment): StreamedCall | undefined {
    const last =
      fragment.index === undefined
        ? (this.#calls.findLast(({ id }) => id === fragment.id) ??
          (fragment.id === "" ? this.#calls.at(-1) : undefined))
        : this.#calls.findLast(({ index }) => index === fragment.index);
    return last === undefined || beginsAnother(fragment, last) ? undefined : last;
  }

  #begin({ index, id }: CallFragment): StreamedCall {
    const isFree = id !== "" && !this.#ids.has(id);
    const call = {
      number: this.#calls.length,
      index,
      id: isFree ? id : `call_${randomUuid()}`,
      name: "",
      text: "",
    };
    this.#ids.add(call.id);
    this.#calls.push(call);
    return call;
  }
}

/** Returns whether a fragment with the index or id of this call begins another call. */
function beginsAnother({ id, name }: CallFragment, call: StreamedCall): boolean {
  if (name === "" || call.name === "") return false;
  if (id !== "" && id !== call.id) return true;
  return isWhole(call.text);
}

const isWhole = (text: string): boolean => parseJson(text) !== undefined;

const toStartChunk = ({ number, id }: StreamedCall, name: string): Chunk => ({
  index: number,
  id,
  function: { name, arguments: "" },
});
