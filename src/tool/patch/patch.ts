import { excerpt } from "../../base/text/excerpt.ts";
import { ToolFailure } from "../tool.ts";

/** Characters of a wrong line that are quoted. */
const quotedLength = 120;

/** Change of one file in a patch. Paths are as the model wrote them. */
export type FilePatch =
  | { readonly kind: "add"; readonly path: string; readonly text: string }
  | { readonly kind: "delete"; readonly path: string }
  | {
      readonly kind: "update";
      readonly path: string;
      readonly movePath?: string;
      readonly hunks: readonly Hunk[];
      /** Hunks of further sections for the same file, each applied to the result of the previous ones. */
      readonly later?: readonly (readonly Hunk[])[];
    };

/** One changed place of a file. */
export interface Hunk {
  /** The `@@` lines above the place, from outer to inner. */
  readonly anchors: readonly string[];
  readonly lines: readonly HunkLine[];
  /** The last line of the hunk is the last of the file. */
  readonly atEnd: boolean;
}

export interface HunkLine {
  readonly kind: "keep" | "remove" | "insert";
  readonly text: string;
}

export const patchFileLimit = 100;

const beginMark = "*** Begin Patch";
const endMark = "*** End Patch";
const endOfFileMark = "*** End of File";
const addMark = "*** Add File:";
const updateMark = "*** Update File:";
const deleteMark = "*** Delete File:";
const moveMark = "*** Move to:";
const fileMarks = [addMark, updateMark, deleteMark];

/** Parses a patch. Throws {@link ToolFailure} with the number of the wrong line. */
export function parsePatch(patchText: string): FilePatch[] {
  const lines = new PatchLines(patchText);
  const patches: FilePatch[] = [];
  skipBlankLines(lines);
  for (; !lines.isDone(); skipBlankLines(lines)) patches.push(parseFile(lines));
  return checkFileCount(mergeRepeats(patches));
}

/** Merges sections for the same file: further hunks of an update, or a new text after a deletion. */
function mergeRepeats(patches: readonly FilePatch[]): FilePatch[] {
  const known = new Map<string, FilePatch>();
  const distinct: FilePatch[] = [];
  for (const patch of patches) {
    const before = known.get(patch.path);
    const joined = before && join(before, patch);
    if (before === undefined || joined === undefined) distinct.push(patch);
    else distinct[distinct.indexOf(before)] = joined;
    known.set(patch.path, joined ?? patch);
  }
  return distinct;
}

function join(first: FilePatch, second: FilePatch): FilePatch | undefined {
  if (first.kind === "delete" && second.kind === "add") return second;
  if (first.kind !== "update" || second.kind !== "update") return undefined;
  if (first.movePath !== undefined || second.movePath !== undefined) return undefined;
  return { ...first, later: [...(first.later ?? []), second.hunks] };
}

function checkFileCount(patches: FilePatch[]): FilePatch[] {
  if (patches.length === 0)
    throw new ToolFailure(
      `The patch names no file. Begin each file with a line such as "*** Update File: path". ${unchanged}`,
    );
  if (patches.length <= patchFileLimit) return patches;
  throw new ToolFailure(
    `The patch names ${patches.length} files; one patch takes ${patchFileLimit}. Send it in parts.`,
  );
}

/** Reader for the lines between the begin and end marks. */
class PatchLines {
  readonly #lines: readonly string[];
  readonly #end: number;
  #at: number;

  constructor(patchText: string) {
    const lines = patchText.replaceAll("\r\n", "\n").split("\n");
    const isMark = (mark: string) => (line: string) => line.trim() === mark;
    const begin = lines.findIndex(isMark(beginMark));
    if (begin === -1)
      throw new ToolFailure(`The patch has no line "${beginMark}". Put it before the patch. ${unchanged}`);
    const end = lines.findLastIndex(isMark(endMark));
    this.#end = end > begin ? end : findEndWithoutMark(lines, begin);
    this.#lines = removeMargin(lines, begin, this.#end);
    this.#at = begin + 1;
  }

  isDone(): boolean {
    return this.#at >= this.#end;
  }

  peek(): string | undefined {
    return this.isDone() ? undefined : this.#lines[this.#at];
  }

  /** Returns the line after the next one. */
  peekSecond(): string | undefined {
    return this.#at + 1 < this.#end ? this.#lines[this.#at + 1] : undefined;
  }

  take(): string {
    return this.#lines[this.#at++] ?? "";
  }

  /** Throws for the line that was taken last. */
  fail(problem: string): never {
    const line = this.#lines[this.#at - 1] ?? "";
    throw new ToolFailure(
      `Line ${this.#at} of the patch: ${problem}: ${JSON.stringify(excerpt(line, quotedLength))}. ${unchanged} Fix this line and send the whole patch.`,
    );
  }
}

const unchanged = "Nothing was changed.";

/** Finds the end of the text, or of the here-document or code fence around it. */
function findEndWithoutMark(lines: readonly string[], begin: number): number {
  const before = lines.slice(0, begin).join("\n");
  const closing = /<<-?\s*["']?(\w+)/.exec(before)?.[1] ?? "```";
  const end = lines.findLastIndex((line) => line.trim() === closing);
  return end > begin ? end : lines.length;
}

/** Removes the indentation of the first line if all lines of the patch have it. */
function removeMargin(lines: readonly string[], begin: number, end: number): readonly string[] {
  const margin = /^[ \t]*/.exec(lines[begin] ?? "")?.[0] ?? "";
  const inside = lines.slice(begin, end).filter((line) => line.trim() !== "");
  if (margin === "" || !inside.every((line) => line.startsWith(margin))) return lines;
  return lines.map((line) => (line.startsWith(margin) ? line.slice(margin.length) : line.trimStart()));
}

function parseFile(lines: PatchLines): FilePatch {
  const line = lines.take().trimStart();
  const mark = fileMarks.find((mark) => line.startsWith(mark));
  const path = mark === undefined ? "" : line.slice(mark.length).trim();
  if (mark === undefined)
    return lines.fail('expected "*** Add File: path", "*** Update File: path" or "*** Delete File: path"');
  if (path === "") return lines.fail("the path is missing");
  if (mark === addMark) return { kind: "add", path, text: parseAdded(lines) };
  if (mark === updateMark) return parseUpdate(lines, path);
  skipBlankLines(lines);
  return { kind: "delete", path };
}

function parseAdded(lines: PatchLines): string {
  let text = "";
  for (let next = lines.peek(); next !== undefined && !isFileMark(next.trimStart()); next = lines.peek()) {
    const line = lines.take();
    if (line.startsWith("+")) text += `${line.slice(1)}\n`;
    else if (line.trim() !== "" || !isFollowedByFile(lines))
      return lines.fail('each line of a new file begins with "+"');
  }
  return text;
}

/** Skips blank lines and returns whether a new file or the end follows. */
function isFollowedByFile(lines: PatchLines): boolean {
  skipBlankLines(lines);
  const next = lines.peek();
  return next === undefined || isFileMark(next.trimStart());
}

function skipBlankLines(lines: PatchLines): void {
  while (lines.peek()?.trim() === "") lines.take();
}

function parseUpdate(lines: PatchLines, path: string): FilePatch {
  const movePath = parseMove(lines);
  skipDiffHeader(lines);
  const hunks: Hunk[] = [];
  for (let next = lines.peek(); next !== undefined && !isFileMark(next); next = lines.peek()) {
    const hunk = parseHunk(lines);
    if (hunk !== undefined) hunks.push(hunk);
  }
  const isChange = hunks.some((hunk) => hunk.lines.some(({ kind }) => kind !== "keep"));
  if (!isChange && movePath === undefined) return lines.fail("the update changes nothing");
  return { kind: "update", path, hunks, ...(movePath !== undefined && { movePath }) };
}

function parseMove(lines: PatchLines): string | undefined {
  if (!lines.peek()?.trimStart().startsWith(moveMark)) return undefined;
  const path = lines.take().trimStart().slice(moveMark.length).trim();
  return path === "" ? lines.fail("the path is missing") : path;
}

/** Skips `--- a/file` and `+++ b/file`, which start patches in other formats. */
function skipDiffHeader(lines: PatchLines): void {
  if (!/^--- \S/.test(lines.peek() ?? "") || !/^\+\+\+ \S/.test(lines.peekSecond() ?? "")) return;
  lines.take();
  lines.take();
}

/** Returns undefined if only blank lines are left. */
function parseHunk(lines: PatchLines): Hunk | undefined {
  const anchors = parseAnchors(lines);
  const body: HunkLine[] = [];
  let blanks = 0;
  let atEnd = false;
  for (let next = lines.peek(); next !== undefined && !endsHunk(next); next = lines.peek()) {
    if (next.startsWith("\\ ")) {
      // "\ No newline at end of file": the file keeps the end that it has.
      lines.take();
      continue;
    }
    if (next.trim() === endOfFileMark) {
      lines.take();
      atEnd = true;
      break;
    }
    const line = parseHunkLine(lines);
    blanks = next === "" ? blanks + 1 : 0;
    body.push(line);
  }
  // Models put empty lines between two hunks; at the end of a hunk they are ignored.
  const trimmed = body.slice(0, body.length - blanks);
  if (atEnd) skipBlankLines(lines);
  return trimmed.length === 0 ? undefined : { anchors, lines: trimmed, atEnd };
}

function parseAnchors(lines: PatchLines): string[] {
  const anchors: string[] = [];
  while (lines.peek()?.startsWith("@@")) {
    const anchor = parseAnchor(lines.take());
    if (anchor !== "") anchors.push(anchor);
  }
  return anchors;
}

/** Parses an `@@` line; line numbers, as in other formats, are ignored. */
function parseAnchor(line: string): string {
  const numbered = /^@@ -\d+(?:,\d+)? \+\d+(?:,\d+)? @@ ?(.*)$/.exec(line);
  const text = (numbered?.[1] ?? line.slice(2).replace(/^ /, "")).replace(/(?:^|\s+)@@\s*$/, "");
  return /^\s*(?:\.{3}|…)?\s*$/.test(text) ? "" : text;
}

function parseHunkLine(lines: PatchLines): HunkLine {
  const line = lines.take();
  const text = line.slice(1);
  switch (line[0]) {
    case undefined:
      return { kind: "keep", text: "" };
    case " ":
      return { kind: "keep", text };
    case "-":
      return { kind: "remove", text };
    case "+":
      return { kind: "insert", text };
    default:
      // The leading blank was forgotten; the match with the file is checked later.
      return { kind: "keep", text: line };
  }
}

function endsHunk(line: string): boolean {
  return line.startsWith("@@") || isFileMark(line);
}

function isFileMark(line: string): boolean {
  return fileMarks.some((mark) => line.startsWith(mark));
}
