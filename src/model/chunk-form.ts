import type { Piece } from "./chunk.ts";

/** How many forms of one answer are tried: servers that put something new into each chunk have none. */
const mostForms = 8;

/** Of longer chunks nothing is learned. */
const longestChunk = 16 * 1024;

/** In a JSON string: its end, an escape, or what JSON does not allow. */
const special = /["\\\p{Cc}]/u;

/**
 * The form of a chunk that adds text to an answer. A server sends hundreds that differ in nothing but that text: where
 * what stands around it is the same and the text has no escape, JSON says the same of all of them, and none needs to be
 * parsed again.
 */
export class ChunkForm {
  readonly #parse: (chunk: string) => Piece | undefined;
  #before = "";
  #behind = "";
  #key: string | undefined;
  #learned = 0;

  /** `parse` finds the one piece that a chunk adds. */
  constructor(parse: (chunk: string) => Piece | undefined) {
    this.#parse = parse;
  }

  /** The piece that the chunk adds, if it has the form that was learned last. */
  pieceIn(chunk: string): Piece | undefined {
    if (this.#key === undefined || !this.#fits(chunk)) return undefined;
    const text = chunk.slice(this.#before.length, chunk.length - this.#behind.length);
    return text !== "" && !special.test(text) ? { key: this.#key, text } : undefined;
  }

  /** Learns the form of a chunk that adds this piece and nothing else. */
  learn(chunk: string, { key, text }: Piece): void {
    if (chunk.length > longestChunk || this.#learned >= mostForms) return;
    if (this.#key === key && this.#fits(chunk)) return;
    const start = chunk.lastIndexOf(`"${text}"`) + 1;
    if (start === 0 || text === "" || special.test(text)) return;
    this.#learned++;
    const before = chunk.slice(0, start);
    const behind = chunk.slice(start + text.length);
    // The same text may stand in other places: what changes there does not change the piece.
    const sample = `${text}.`;
    const tried = this.#parse(before + sample + behind);
    if (tried?.key !== key || tried.text !== sample) return;
    this.#key = key;
    this.#before = before;
    this.#behind = behind;
  }

  #fits(chunk: string): boolean {
    return (
      chunk.length > this.#before.length + this.#behind.length &&
      chunk.startsWith(this.#before) &&
      chunk.endsWith(this.#behind)
    );
  }
}
