import { once } from "node:events";
import { removeControls, removeEscapes } from "../../base/text/controls.ts";
import { codeOf, messageOf } from "../../base/errors.ts";
import { showInvisible } from "../../base/text/invisible.ts";
import { exitCodes } from "./help.ts";
import { type Style, styleFor } from "./style.ts";
import { wrapWords } from "./wrap-words.ts";

/** Writes a line to stdout, and waits while the reader is slow. */
export async function print(line: string): Promise<void> {
  if (!process.stdout.write(`${line}\n`)) await once(process.stdout, "drain");
}

export async function printJson(value: unknown): Promise<void> {
  await print(JSON.stringify(value, undefined, 2));
}

/** Writes a line to stderr, prefixed with the program's name. */
export function writeNotice(text: string): void {
  writeToStderr(`fairlead: ${text}`);
}

/** Writes lines to stderr, without control characters. On a terminal they break between words. */
export function writeToStderr(text: string): void {
  const { isTTY, columns } = process.stderr;
  process.stderr.write(`${fitLines(removeControls(text), isTTY ? columns : undefined)}\n`);
}

/** Wraps the lines of a text that are wider than the terminal. */
export function fitLines(text: string, columns: number | undefined): string {
  if (columns === undefined) return text;
  const lines = text.split("\n");
  return lines.flatMap((line) => (widthOf(line) > columns ? wrapWords(line, columns) : [line])).join("\n");
}

/**
 * Exits silently when the reader closes stdout, as `head` does, and with a message when stdout cannot be written, as on
 * a full disk.
 */
export function exitOnClosedPipe(): void {
  process.stdout.on("error", (error) => {
    if (codeOf(error) === "EPIPE") process.exit(exitCodes.closedPipe);
    writeNotice(`the output cannot be written: ${messageOf(error)}`);
    process.exit(exitCodes.failed);
  });
  // A closed stderr cannot be reported anywhere.
  process.stderr.on("error", () => {});
}

/** Removes control characters when the stream is a terminal; pipes and files get the text unchanged. */
export function sanitizeFor(stream: { isTTY?: boolean }, text: string): string {
  return stream.isTTY === true ? removeControls(text) : text;
}

export interface Column {
  readonly name: string;
  /** Aligned right and never truncated; for numbers. */
  readonly right?: boolean;
  /** Truncated at the start instead of the end; for ids and paths. */
  readonly keepsEnd?: boolean;
}

/** Prints a table on a terminal; in a pipe tab-separated values without a header. */
export async function printTable(
  columns: readonly Column[],
  rows: readonly (readonly string[])[],
): Promise<void> {
  const clean = rows.map((row) => row.map(toCell));
  if (!process.stdout.isTTY) {
    for (const row of clean) await print(row.join("\t"));
    return;
  }
  const style = styleFor(process.stdout, process.env);
  for (const line of tableLines(columns, clean, { style, width: process.stdout.columns })) await print(line);
}

/**
 * Formats a table. Where it is wider than the terminal, omits empty columns, shrinks text columns, the widest first, and
 * then the gaps.
 */
export function tableLines(
  columns: readonly Column[],
  rows: readonly (readonly string[])[],
  { style, width }: { style: Style; width: number },
): string[] {
  const head = columns.map(({ name }) => name.toUpperCase());
  const wanted = columns.map((_, at) => Math.max(...[head, ...rows].map((row) => widthOf(row[at] ?? ""))));
  if (sumWidths(wanted) > width) {
    const isFilled = columns.map((_, at) => rows.some((row) => row[at]));
    const filled = columns.filter((_, at) => isFilled[at]);
    if (filled.length < columns.length && filled.length > 0) {
      const rest = rows.map((row) => row.filter((_, at) => isFilled[at]));
      return tableLines(filled, rest, { style, width });
    }
  }
  const widths = fitWidths(width, wanted, columns);
  const over = sumWidths(widths) - width;
  const gap = over > 0 && over < widths.length ? " " : columnGap;
  const toLine = (row: readonly string[]) =>
    row
      .map((cell, at) => padOrTruncate(cell, widths[at] ?? 0, columns[at]))
      .join(gap)
      .trimEnd();
  return [style.dim(toLine(head)), ...rows.map(toLine)];
}

function fitWidths(width: number, wanted: readonly number[], columns: readonly Column[]): number[] {
  const widths = [...wanted];
  for (let over = sumWidths(widths) - width; over > 0; over--) {
    const words = widths.map((one, at) => (columns[at]?.right === true ? 0 : one));
    const widest = Math.max(...words);
    if (widest <= minColumnWidth) break;
    widths[words.indexOf(widest)] = widest - 1;
  }
  return widths;
}

const columnGap = "  ";

/** Returns the width of a table with these columns. */
const sumWidths = (widths: readonly number[]): number =>
  widths.reduce((sum, one) => sum + one, columnGap.length * (widths.length - 1));

/** Columns are not shrunk below this width. */
const minColumnWidth = 12;

/** Formats text as one line without control characters. */
export function toCell(text: string): string {
  return showInvisible(removeEscapes(text).replaceAll(/\s+/g, " ").trim());
}

function padOrTruncate(text: string, width: number, { right, keepsEnd }: Partial<Column> = {}): string {
  const shown = widthOf(text) <= width ? text : truncate(width, text, keepsEnd === true);
  const space = " ".repeat(Math.max(0, width - widthOf(shown)));
  return right === true ? space + shown : shown + space;
}

function truncate(width: number, text: string, keepsEnd: boolean): string {
  if (!keepsEnd) return `${takeColumns(text, width - 1)}…`;
  const end = takeColumns(Array.from(text).reverse().join(""), width - 1);
  return `…${Array.from(end).reverse().join("")}`;
}

/** Returns the beginning of a text that fits into a number of columns. */
export function takeColumns(text: string, width: number): string {
  let taken = "";
  let used = 0;
  for (const character of text) {
    used += widthOf(character);
    if (used > width) break;
    taken += character;
  }
  return taken;
}

/** Width of the text in terminal columns. */
export function widthOf(text: string): number {
  let width = 0;
  for (const character of text) width += noWidth.test(character) ? 0 : doubleWidth.test(character) ? 2 : 1;
  return width;
}

const noWidth = /\p{M}|\u{200D}|[\u{FE00}-\u{FE0F}]/u;
/** East Asian wide characters (Unicode's annex 11) and pictures. */
const doubleWidth =
  /[\u{1100}-\u{115F}\u{2E80}-\u{303E}\u{3041}-\u{A4CF}\u{AC00}-\u{D7A3}\u{F900}-\u{FAFF}\u{FE30}-\u{FE6F}\u{FF00}-\u{FF60}\u{FFE0}-\u{FFE6}\u{20000}-\u{3FFFD}]|\p{Emoji_Presentation}/u;
