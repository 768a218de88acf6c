import type { SessionUpdate, ToolCall, ToolCallContent } from "@agentclientprotocol/sdk";
import { findHunks, formatHunk, splitLines } from "../../base/text/line-diff.ts";
import { removeControls } from "../../base/text/controls.ts";
import { isRecord } from "../../base/text/record.ts";
import { takeColumns } from "../terminal/output.ts";
import type { Style } from "../terminal/style.ts";
import { cutLine, toScreenLine } from "./text-lines.ts";

/** A change with its number on the card. */
interface ShownItem {
  readonly number: number;
  readonly kind: string;
  readonly label: string;
  readonly isContested: boolean;
}

interface ShownFile {
  readonly path: string;
  readonly isEdited: boolean;
  readonly items: readonly ShownItem[];
}

export type ChangesCard = Pick<ToolCall, "rawOutput" | "content">;

/** Returns the card of `/changes`, if the update is one. */
export function findChangesCard(update: SessionUpdate): ChangesCard | undefined {
  return update.sessionUpdate === "tool_call" && update.name === "changes" ? update : undefined;
}

interface Paper {
  readonly style: Style;
  /** Columns of the terminal; absent outside terminals. */
  readonly width?: number | undefined;
}

/** Formats the card of `/changes` as a diff with the numbers that `/drop` takes. */
export function formatChanges({ rawOutput, content }: ChangesCard, paper: Paper): string {
  const files = isRecord(rawOutput) && Array.isArray(rawOutput.files) ? rawOutput.files.map(toFile) : [];
  const blocks = files.map((file) => formatFile(file, content ?? [], paper).join("\n"));
  return `${blocks.join("\n\n")}\n`;
}

function formatFile(file: ShownFile, content: readonly ToolCallContent[], paper: Paper): string[] {
  const { style } = paper;
  const note = file.isEdited ? style.yellow(" (edited since)") : "";
  const lines = [`${style.bold(removeControls(file.path))}${note}`];
  const diff = content.find((item) => item.type === "diff" && item.path.endsWith(file.path));
  const hunks = diff?.type === "diff" ? formatHunks(diff) : [];
  const hunkItems = file.items.filter(({ kind }) => kind === "hunk");
  // The content of a very long file is shortened, so that its hunks have no numbers.
  const isWhole = hunkItems.length === hunks.length;
  let next = 0;
  for (const item of file.items) {
    const contested = item.isContested ? style.yellow(" (edited since)") : "";
    lines.push(`${style.cyan(`[${item.number}]`)} ${removeControls(item.label)}${contested}`);
    const isWholeFile = item.kind === "created" || item.kind === "deleted";
    const shown = isWholeFile ? hunks.flat() : item.kind === "hunk" && isWhole ? hunks[next++] : undefined;
    if (item.kind === "hunk" && !isWhole) lines.push(style.dim("  (the file is too long to show this)"));
    for (const line of shown ?? []) lines.push(...formatLine(line, paper));
  }
  return lines;
}

function formatHunks({ oldText, newText }: { oldText?: string | null; newText: string }): string[][] {
  const [old, fresh] = [splitLines(oldText ?? ""), splitLines(newText)];
  return findHunks(old, fresh).map((hunk) => formatHunk(hunk, old, fresh));
}

/** Indents a line of a diff. In a terminal, changed lines are wrapped and others are cut. */
function formatLine(line: string, { style, width }: Paper): string[] {
  const isChanged = line.startsWith("+") || line.startsWith("-");
  const color = line.startsWith("+") ? "green" : line.startsWith("-") ? "red" : "dim";
  const paint = (text: string) => style[color](indent + text);
  if (width === undefined) return [paint(removeControls(line))];
  const columns = Math.max(minColumns, width - indent.length);
  const text = toScreenLine(line);
  return (isChanged ? wrap(text, columns) : [cutLine(text, columns)]).map(paint);
}

/** Wraps code, whose spaces matter. Continued lines are indented below the mark. */
function wrap(line: string, columns: number): string[] {
  const lines: string[] = [];
  for (let rest = line; rest !== "";) {
    const part = takeColumns(rest, columns);
    lines.push(part);
    rest = part.length === rest.length ? "" : ` ${rest.slice(part.length)}`;
  }
  return lines;
}

const indent = "  ";
/** Lines are not cut or wrapped below this width. */
const minColumns = 20;

function toFile(value: unknown): ShownFile {
  const { path, isEdited, items } = isRecord(value) ? value : {};
  return {
    path: String(path),
    isEdited: isEdited === true,
    items: Array.isArray(items) ? items.map(toItem) : [],
  };
}

function toItem(value: unknown): ShownItem {
  const { number, kind, label, isContested } = isRecord(value) ? value : {};
  return {
    number: Number(number),
    kind: String(kind),
    label: String(label),
    isContested: isContested === true,
  };
}
