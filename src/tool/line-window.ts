import { headOf } from "./output-limit.ts";
import { ToolFailure } from "./tool.ts";

/** Which lines or entries are wanted; `first` counts from 1. */
export interface Range {
  readonly first: number;
  readonly count: number;
}

/** One call shows at most so much; the answer says how to go on. */
export const lineLimit = 2_000;
export const readLimitBytes = 50 * 1024;
const lineLengthLimit = 2_000;

/** Takes text as it comes and keeps the wanted lines, numbered and cut. */
export class LineWindow {
  readonly shown: string[] = [];
  /** Lines that have ended so far. */
  lines = 0;
  /** Nothing more can be shown. */
  full = false;
  /** Whether the bytes ran out before the lines did. */
  cutByBytes = false;
  readonly #range: Range;
  #bytes = 0;
  #line = "";
  #lineLength = 0;

  constructor(range: Range) {
    this.#range = range;
  }

  add(text: string): void {
    let from = 0;
    for (let at = text.indexOf("\n"); at !== -1; at = text.indexOf("\n", from)) {
      this.#append(text.slice(from, at));
      this.#endLine();
      from = at + 1;
    }
    this.#append(text.slice(from));
  }

  end(): void {
    if (this.#lineLength > 0) this.#endLine();
  }

  #append(piece: string): void {
    this.#lineLength += piece.length;
    // One more than is shown, for the return of a line that ends with one.
    const room = lineLengthLimit + 1 - this.#line.length;
    if (room > 0) this.#line += piece.slice(0, room);
  }

  #endLine(): void {
    this.lines++;
    if (this.lines >= this.#range.first && !this.full) this.#show();
    this.#line = "";
    this.#lineLength = 0;
  }

  #show(): void {
    const text = `${this.lines}: ${this.#visibleLine()}`;
    this.#bytes += Buffer.byteLength(text) + 1;
    this.cutByBytes = this.#bytes > readLimitBytes;
    if (!this.cutByBytes) this.shown.push(text);
    this.full = this.cutByBytes || this.shown.length >= this.#range.count;
  }

  #visibleLine(): string {
    const isWhole = this.#lineLength === this.#line.length;
    const line = isWhole ? this.#line.replace(/\r$/, "") : this.#line;
    if (line.length <= lineLengthLimit) return line;
    return `${headOf(line, lineLengthLimit)}… (line cut at ${lineLengthLimit} of ${this.#lineLength} characters)`;
  }
}

/** The lines with a note on how to go on. Throws {@link ToolFailure} when there are none where the range begins. */
export function describeWindow(window: LineWindow, { first }: Range, isCounted: boolean): string {
  if (isCounted && window.lines === 0) return "(The file is empty.)";
  if (window.shown.length === 0) {
    throw new ToolFailure(
      `There is no line ${first}: the file ends at line ${window.lines}. Use a smaller offset.`,
    );
  }
  const last = first + window.shown.length - 1;
  return [...window.shown, "", positionNotice(window, first, last, isCounted)].join("\n");
}

function positionNotice(
  { lines, cutByBytes }: LineWindow,
  first: number,
  last: number,
  isCounted: boolean,
): string {
  const total = isCounted ? `${lines}` : "a file too large to count";
  if (isCounted && last === lines) return `(End of file at line ${lines}.)`;
  const why = cutByBytes ? `, cut at ${readLimitBytes / 1024} KB` : "";
  return `(Lines ${first}-${last} of ${total}${why}. Go on with offset ${last + 1}.)`;
}
