/** The unit in which a server counts columns. */
export type PositionEncoding = "utf-8" | "utf-16" | "utf-32";

/** A place in a text; both count from 0. Columns are UTF-16 units unless stated otherwise. */
export interface Position {
  readonly line: number;
  readonly character: number;
}

export interface Range {
  readonly start: Position;
  readonly end: Position;
}

/** Splits a text as the protocol counts lines: after LF, CRLF and CR. */
export function splitLines(text: string): string[] {
  return text.split(/\r\n|\n|\r/);
}

/** Converts a column in UTF-16 units to the server's unit. */
export function toServerColumn(line: string, character: number, encoding: PositionEncoding): number {
  const before = line.slice(0, character);
  if (encoding === "utf-8") return Buffer.byteLength(before);
  return encoding === "utf-32" ? Array.from(before).length : before.length;
}

/** Converts a column in the server's unit to UTF-16 units. */
export function fromServerColumn(line: string, column: number, encoding: PositionEncoding): number {
  if (encoding === "utf-16") return column;
  let units = 0;
  let counted = 0;
  for (const sign of line) {
    if (counted >= column) return units;
    units += sign.length;
    counted += encoding === "utf-8" ? Buffer.byteLength(sign) : 1;
  }
  return units;
}

/** Converts a range of the server, given the lines of its text. */
export function fromServerRange(range: Range, lines: readonly string[], encoding: PositionEncoding): Range {
  const convert = ({ line, character }: Position): Position => ({
    line,
    character: fromServerColumn(lines[line] ?? "", character, encoding),
  });
  return encoding === "utf-16" ? range : { start: convert(range.start), end: convert(range.end) };
}
