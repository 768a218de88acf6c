import { formatBytes, takeHead, type OutputLimits } from "../output-limit.ts";
import { ToolFailure } from "../tool.ts";

/** Range of lines or entries; `first` counts from 1. */
export interface Range {
  readonly first: number;
  readonly count: number;
  /** Maximum size of the shown text in UTF-8 bytes. */
  readonly bytes: number;
}

/** Limits of one call; the result says how to continue. */
const lineLimit = 2_000;
const readLimitBytes = 50 * 1024;
const lineLengthLimit = 2_000;

/** Limits of one call: the tool's own, or the configured ones if narrower. */
export function windowLimits({ maxLines = lineLimit, maxBytes = readLimitBytes }: OutputLimits) {
  return { lines: Math.min(maxLines, lineLimit), bytes: Math.min(maxBytes, readLimitBytes) };
}

/** Collects a range of lines from streamed text, numbered and cut. */
export class LineWindow {
  readonly shown: string[] = [];
  /** Finished lines so far. */
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

  #append(text: string): void {
    this.#lineLength += text.length;
    // One character more than is shown, for a carriage return at the end.
    const free = lineLengthLimit + 1 - this.#line.length;
    if (free > 0) this.#line += text.slice(0, free);
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
    // The first line is always shown, so that the next call can continue.
    this.cutByBytes = this.#bytes > this.#range.bytes + 1 && this.shown.length > 0;
    if (!this.cutByBytes) this.shown.push(text);
    this.full = this.cutByBytes || this.shown.length >= this.#range.count;
  }

  #visibleLine(): string {
    const isWhole = this.#lineLength === this.#line.length;
    const line = isWhole ? this.#line.replace(/\r$/, "") : this.#line;
    if (line.length <= lineLengthLimit) return line;
    return `${takeHead(line, lineLengthLimit)}… (line cut at ${lineLengthLimit} of ${this.#lineLength} characters)`;
  }
}

/** Returns the lines with a note on how to continue. Throws {@link ToolFailure} if the range starts after the end. */
export function describeWindow(window: LineWindow, range: Range, isCounted: boolean): DescribedWindow {
  const { first } = range;
  if (isCounted && window.lines === 0) return { output: "(The file is empty.)" };
  if (window.shown.length === 0) {
    throw new ToolFailure(
      `There is no line ${first}: the file ends at line ${window.lines}. Use a smaller offset.`,
    );
  }
  return { output: window.shown.join("\n"), notes: positionNotice(window, range, isCounted) };
}

interface DescribedWindow {
  output: string;
  notes?: string;
}

function positionNotice(
  { lines, shown, cutByBytes }: LineWindow,
  { first, bytes }: Range,
  isCounted: boolean,
): string {
  const last = first + shown.length - 1;
  const total = isCounted ? `${lines}` : "a file too large to count";
  if (isCounted && last === lines) return `(End of file at line ${lines}.)`;
  const why = cutByBytes ? `, cut at ${formatBytes(bytes)}` : "";
  return `(Lines ${first}-${last} of ${total}${why}. Go on with offset ${last + 1}.)`;
}
