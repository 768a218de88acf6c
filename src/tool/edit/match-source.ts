/** A range of the edited text, in UTF-16 units, end excluded. */
export interface Span {
  readonly start: number;
  readonly end: number;
}

/** The text to find and its replacement, with `\n` only. */
export interface EditQuery {
  readonly needle: string;
  readonly replacement: string;
  readonly all: boolean;
  /** The edit as a change of lines. */
  readonly change: () => readonly ChangedLine[];
}

/** A range of the text with `\n` only, and its replacement. */
export interface MatchPlace extends Span {
  readonly replacement: string;
  /** Found by similarity: several of these are never replaced together. */
  readonly similar?: boolean;
  /** The match is exact, but the new text's indentation was completed. */
  readonly indented?: boolean;
}

/** One line of a change. `keep` and `remove` lines form the old text, `keep` and `insert` lines the new. */
export interface ChangedLine {
  readonly kind: "keep" | "remove" | "insert";
  readonly text: string;
  /** For an inserted line: index of the old line with the same words but another indentation. */
  readonly like?: number;
}

export type Find = (source: Source, wanted: EditQuery) => MatchPlace[];

/** The text with `\n` only, split into lines, with a mapping back to the original text. */
export class Source {
  readonly text: string;
  readonly lines: readonly string[];
  readonly starts: readonly number[];
  readonly #raw: string;
  /** Offsets in `text` of newlines that follow a carriage return in the raw text. */
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

  /** The lines, each run of blanks collapsed to one. */
  get collapsed(): readonly string[] {
    this.#collapsed ??= this.lines.map(collapsed);
    return this.#collapsed;
  }

  /** Returns the line, from 0, that contains the offset. */
  lineAt(offset: number): number {
    return countBelow(this.starts, offset + 1) - 1;
  }

  /** Returns the range of whole lines, with the last newline if wanted and present. */
  linesSpan(first: number, count: number, withNewline: boolean): Span {
    const last = first + count - 1;
    const end = (this.starts[last] ?? 0) + (this.lines[last] ?? "").length;
    return { start: this.starts[first] ?? 0, end: withNewline ? Math.min(end + 1, this.text.length) : end };
  }

  toRaw({ start, end }: Span): Span {
    return { start: this.#rawOffset(start), end: this.#rawOffset(end) };
  }

  /** Applies the replacements. The places must be in order and must not overlap. */
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

/** Splits text into lines; a newline at the end starts no further line. */
export function splitLines(text: string): string[] {
  const lines = text.split("\n");
  if (lines.length > 1 && lines.at(-1) === "") lines.pop();
  return lines;
}

/** Collapses each run of blanks to one, and trims the line. */
export function collapsed(line: string): string {
  return line.trim().replaceAll(/\s+/g, " ");
}

/** Replaces typographic dashes, quotes and blanks by those of ASCII. */
export function plainPunctuation(line: string): string {
  if (!/[\u00A0-\uFFFF]/.test(line)) return line;
  return line
    .replaceAll(/[\u2010-\u2015\u2212]/g, "-")
    .replaceAll(/[\u2018-\u201B]/g, "'")
    .replaceAll(/[\u201C-\u201F]/g, '"')
    .replaceAll(/[\u00A0\u2002-\u200A\u202F\u205F\u3000]/g, " ");
}

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

/** Counts the numbers below a limit, by binary search. */
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
