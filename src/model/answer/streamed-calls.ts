import { randomUUID } from "node:crypto";
import { parseJson } from "../../base/text/json.ts";
import { unnamedTool } from "./call-arguments.ts";
import type { CallPiece, Chunk } from "./chunk.ts";

interface StreamedCall {
  readonly number: number;
  /** As the server sent them. */
  readonly index: number | undefined;
  id: string;
  name: string;
  /** The arguments so far. */
  text: string;
}

/** What a piece adds: the beginning of a call, and the arguments that follow. */
interface AddedPiece {
  readonly number: number;
  readonly start: Chunk | undefined;
  readonly text: string;
}

/**
 * Assigns the pieces of an answer's calls to their calls and numbers those in order. Servers differ: some leave out the
 * index or send 0 for each call, some leave out ids, repeat them with each piece or make new ones for each, some send the
 * name late or repeat it.
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

  add(piece: CallPiece): AddedPiece {
    const call = this.#callOf(piece) ?? this.#begin(piece);
    const { number } = call;
    if (piece.signature !== undefined) this.#onSignature(call.id, piece.signature);
    const wasNamed = call.name !== "";
    if (!wasNamed) call.name = piece.name;
    call.text += piece.arguments;
    if (wasNamed) return { number, start: undefined, text: piece.arguments };
    if (call.name === "") return { number, start: undefined, text: "" };
    return { number, start: startOf(call, call.name), text: call.text };
  }

  /** Calls that never got a name, whole. */
  unnamed(): Chunk[] {
    return this.#calls
      .filter(({ name }) => name === "")
      .map((call) => ({
        ...startOf(call, unnamedTool),
        function: { name: unnamedTool, arguments: call.text },
      }));
  }

  /** The call that a piece goes on with. */
  #callOf(piece: CallPiece): StreamedCall | undefined {
    const last =
      piece.index === undefined
        ? (this.#calls.findLast(({ id }) => id === piece.id) ??
          (piece.id === "" ? this.#calls.at(-1) : undefined))
        : this.#calls.findLast(({ index }) => index === piece.index);
    return last === undefined || begins(piece, last) ? undefined : last;
  }

  #begin({ index, id }: CallPiece): StreamedCall {
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

/** Whether a piece begins another call than this one, which has its index or its id. */
function begins({ id, name }: CallPiece, call: StreamedCall): boolean {
  if (name === "" || call.name === "") return false;
  if (id !== "" && id !== call.id) return true;
  return isWhole(call.text);
}

const isWhole = (text: string): boolean => parseJson(text) !== undefined;

const startOf = ({ number, id }: StreamedCall, name: string): Chunk => ({
  index: number,
  id,
  function: { name, arguments: "" },
});
