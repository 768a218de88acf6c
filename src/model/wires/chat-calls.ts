import { randomUUID } from "node:crypto";
import { parseJson } from "../../base/text/json.ts";
import { unnamedTool } from "../answer/call-arguments.ts";
import type { CallFragment, Chunk } from "./chat-chunk.ts";

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
export class StreamedCalls {
  readonly #calls: StreamedCall[] = [];
  readonly #ids = new Set<string>();
  readonly #onSignature: (id: string, signature: string) => void;

  constructor(onSignature: (id: string, signature: string) => void) {
    this.#onSignature = onSignature;
  }

  get isEmpty(): boolean {
    return this.#calls.length === 0;
  }

  add(piece: CallFragment): AddedFragment {
    const call = this.#findCall(piece) ?? this.#begin(piece);
    const { number } = call;
    if (piece.signature !== undefined) this.#onSignature(call.id, piece.signature);
    const wasNamed = call.name !== "";
    if (!wasNamed) call.name = piece.name;
    call.text += piece.arguments;
    if (wasNamed) return { number, start: undefined, text: piece.arguments };
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
  #findCall(piece: CallFragment): StreamedCall | undefined {
    const last =
      piece.index === undefined
        ? (this.#calls.findLast(({ id }) => id === piece.id) ??
          (piece.id === "" ? this.#calls.at(-1) : undefined))
        : this.#calls.findLast(({ index }) => index === piece.index);
    return last === undefined || beginsAnother(piece, last) ? undefined : last;
  }

  #begin({ index, id }: CallFragment): StreamedCall {
    const isFree = id !== "" && !this.#ids.has(id);
    const call = {
      number: this.#calls.length,
      index,
      id: isFree ? id : `call_${randomUUID()}`,
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
