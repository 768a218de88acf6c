/** A piece of the text that was edited, in UTF-16 units, end excluded. */
export interface Span {
  readonly start: number;
  readonly end: number;
}

/** What is looked for and what comes in its place, with `\n` only. */
export interface EditQuery {
  readonly needle: string;
  readonly replacement: string;
  readonly all: boolean;
  /** The same as a change of lines. */
  readonly change: () => readonly ChangedLine[];
}

/** A span of the text with `\n` only, and what stands there afterwards. */
export interface MatchPlace extends Span {
  readonly replacement: string;
  /** Found by likeness: several of these are never replaced at once. */
  readonly similar?: boolean;
  /** The text was found as written, and the new text's indentation completed. */
  readonly indented?: boolean;
}

/** One line of a change, in order. Kept and removed lines make up the old text, kept and inserted ones the new. */
export interface ChangedLine {
  readonly kind: "keep" | "remove" | "insert";
  readonly text: string;
  /** Of an inserted line: index of the old line with the same words and another indentation. */
  readonly like?: number;
}

export type Find = (source: Source, wanted: EditQuery) => MatchPlace[];

/** The text with `\n` only, cut into lines once, and the way back to the text as it is. */
export class Source {
  readonly text: string;
  readonly lines: readonly string[];
  readonly starts: readonly number[];
  readonly #raw: string;
  /** Where in `text` the newlines stand that have a return before them in the raw text. */
  readonly #returns: readonly number[];
  #trimmed: readonly string[] | undefined;
  #collapsed: readonly string[] | undefined;

  constructor(raw: string) {
    this.#raw = raw;
    this.text = normalizeNewlines(raw);
    this.lines = this.text.split("\n");
    this.starts = lineStarts(this.lines);
    this.#returns = raw.length === this.text.length ? [] : findReturns(raw);
  }

  get trimmed(): readonly string[] {
    this.#trimmed ??= this.lines.map((line) => line.trim());
    return this.#trimmed;
  }

  /** The lines with each run of blanks as one. */
  get collapsed(): readonly string[] {
    this.#collapsed ??= this.lines.map(collapsed);
    return this.#collapsed;
  }

  /** The line, counted from 0, that holds the offset. */
  lineAt(offset: number): number {
    return countBelow(this.starts, offset + 1) - 1;
  }

  /** Whole lines, without the newline after the last unless it is asked for and there. */
  linesSpan(first: number, count: number, withNewline: boolean): Span {
    const last = first + count - 1;
    const end = (this.starts[last] ?? 0) + (this.lines[last] ?? "").length;
    return { start: this.starts[first] ?? 0, end: withNewline ? Math.min(end + 1, this.text.length) : end };
  }

  toRaw({ start, end }: Span): Span {
    return { start: this.#rawOffset(start), end: this.#rawOffset(end) };
  }

  /** Puts the replacements in; the places are in order and do not overlap. */
  replace(places: readonly MatchPlace[]): string {
    const pieces: string[] = [];
    let done = 0;
    for (const place of places) {
      const { start, end } = this.toRaw(place);
      pieces.push(this.#raw.slice(done, start), this.#withLineEnds(place.replacement));
      done = end;
    }
    return pieces.join("") + this.#raw.slice(done);
  }

  #withLineEnds(text: string): string {
    return this.#returns.length * 2 > this.lines.length - 1 ? text.replaceAll("\n", "\r\n") : text;
  }

  #rawOffset(offset: number): number {
    return offset + countBelow(this.#returns, offset);
  }
}

/** A newline at the end closes the last line and begins none. */
export function splitLines(text: string): string[] {
  const lines = text.split("\n");
  if (lines.length > 1 && lines.at(-1) === "") lines.pop();
  return lines;
}

/** The line with each run of blanks as one, and none around it. */
export function collapsed(line: string): string {
  return line.trim().replaceAll(/\s+/g, " ");
}

/** The text with `\n` only. */
export function normalizeNewlines(text: string): string {
  return text.includes("\r\n") ? text.replaceAll("\r\n", "\n") : text;
}

function lineStarts(lines: readonly string[]): number[] {
  let next = 0;
  return lines.map((line) => {
    const start = next;
    next += line.length + 1;
    return start;
  });
}

function findReturns(raw: string): number[] {
  const found: number[] = [];
  for (let at = raw.indexOf("\r\n"); at !== -1; at = raw.indexOf("\r\n", at + 2)) {
    found.push(at - found.length);
  }
  return found;
}

/** How many of the ascending numbers are smaller. */
function countBelow(numbers: readonly number[], limit: number): number {
  let low = 0;
  let high = numbers.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((numbers[middle] ?? limit) < limit) low = middle + 1;
    else high = middle;
  }
  return low;
}
