import { once } from "node:events";
import { removeControls, removeEscapes } from "../../base/text/controls.ts";
import { codeOf, messageOf } from "../../base/errors.ts";
import { showInvisible } from "../../permission/invisible.ts";
import { exitCodes } from "./help.ts";
import { type Style, styleFor } from "./style.ts";

/** Writes a line to stdout, and waits for a reader that is slow. */
export async function print(line: string): Promise<void> {
  if (!process.stdout.write(`${line}\n`)) await once(process.stdout, "drain");
}

export async function printJson(value: unknown): Promise<void> {
  await print(JSON.stringify(value, undefined, 2));
}

/** Tells the person something beside the answer, in the program's name. */
export function writeNotice(text: string): void {
  tell(`fairlead: ${text}`);
}

/** The same in nobody's name. */
export function tell(text: string): void {
  process.stderr.write(`${removeControls(text)}\n`);
}

/**
 * A reader that has seen enough, such as `head`, ends the program without a word; where the output cannot be kept,
 * such as on a full disk, that is said.
 */
export function endWithReader(): void {
  process.stdout.on("error", (error) => {
    if (codeOf(error) === "EPIPE") process.exit(exitCodes.closedPipe);
    writeNotice(`the output cannot be written: ${messageOf(error)}`);
    process.exit(exitCodes.failed);
  });
  // Where nobody reads remarks there is nobody to tell that.
  process.stderr.on("error", () => {});
}

/** The text without anything that a terminal would obey; in a pipe and in a file as it is. */
export function shownOn(stream: { isTTY?: boolean }, text: string): string {
  return stream.isTTY === true ? removeControls(text) : text;
}

export interface Column {
  readonly name: string;
  /** Numbers stand at the right, and are never cut. */
  readonly right?: boolean;
  /** Where there is no room the end is kept, which tells more of an id or a path. */
  readonly keepsEnd?: boolean;
}

/** A table for a person at a terminal; in a pipe values with tabs between them, without a head, for programs. */
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

/** The lines of a table, none wider than the terminal if words can give way: those of the widest column first. */
export function tableLines(
  columns: readonly Column[],
  rows: readonly (readonly string[])[],
  { style, width }: { style: Style; width: number },
): string[] {
  const head = columns.map(({ name }) => name.toUpperCase());
  const wanted = columns.map((_, at) => Math.max(...[head, ...rows].map((row) => widthOf(row[at] ?? ""))));
  const widths = widthsWithin(width, wanted, columns);
  const toLine = (row: readonly string[]) =>
    row
      .map((cell, at) => toWidth(cell, widths[at] ?? 0, columns[at]))
      .join("  ")
      .trimEnd();
  return [style.dim(toLine(head)), ...rows.map(toLine)];
}

function widthsWithin(width: number, wanted: readonly number[], columns: readonly Column[]): number[] {
  const widths = [...wanted];
  let over = widths.reduce((sum, one) => sum + one, 2 * (widths.length - 1)) - width;
  for (; over > 0; over--) {
    const words = widths.map((one, at) => (columns[at]?.right === true ? 0 : one));
    const widest = Math.max(...words);
    if (widest <= leastWidth) break;
    widths[words.indexOf(widest)] = widest - 1;
  }
  return widths;
}

/** Below this a column says nothing any more. */
const leastWidth = 12;

/** One line, without anything that a terminal would obey. */
export function toCell(text: string): string {
  return showInvisible(removeEscapes(text).replaceAll(/\s+/g, " ").trim());
}

function toWidth(text: string, width: number, { right, keepsEnd }: Partial<Column> = {}): string {
  const shown = widthOf(text) <= width ? text : cutTo(width, text, keepsEnd === true);
  const space = " ".repeat(Math.max(0, width - widthOf(shown)));
  return right === true ? space + shown : shown + space;
}

function cutTo(width: number, text: string, keepsEnd: boolean): string {
  if (!keepsEnd) return `${firstColumns(text, width - 1)}…`;
  const end = firstColumns(Array.from(text).reverse().join(""), width - 1);
  return `…${Array.from(end).reverse().join("")}`;
}

function firstColumns(text: string, width: number): string {
  let kept = "";
  let used = 0;
  for (const character of text) {
    used += widthOf(character);
    if (used > width) break;
    kept += character;
  }
  return kept;
}

/** Columns of a terminal that the text takes. */
export function widthOf(text: string): number {
  let width = 0;
  for (const character of text) width += noWidth.test(character) ? 0 : doubleWidth.test(character) ? 2 : 1;
  return width;
}

const noWidth = /\p{M}|\u{200D}|[\u{FE00}-\u{FE0F}]/u;
/** East Asian wide characters (Unicode's annex 11) and pictures. */
const doubleWidth =
  /[\u{1100}-\u{115F}\u{2E80}-\u{303E}\u{3041}-\u{A4CF}\u{AC00}-\u{D7A3}\u{F900}-\u{FAFF}\u{FE30}-\u{FE6F}\u{FF00}-\u{FF60}\u{FFE0}-\u{FFE6}\u{20000}-\u{3FFFD}]|\p{Emoji_Presentation}/u;
