import { ToolFailure } from "./tool.ts";

/** What a patch does to one file. Paths are as the model wrote them. */
export type FilePatch =
  | { readonly kind: "add"; readonly path: string; readonly text: string }
  | { readonly kind: "delete"; readonly path: string }
  | {
      readonly kind: "update";
      readonly path: string;
      readonly movePath?: string;
      readonly hunks: readonly Hunk[];
    };

/** One place of a file that changes. */
export interface Hunk {
  /** Lines (of `@@`) below which the place is, from outer to inner. */
  readonly anchors: readonly string[];
  readonly lines: readonly HunkLine[];
  /** Its last line is the last of the file. */
  readonly atEnd: boolean;
}

export interface HunkLine {
  readonly kind: "keep" | "remove" | "insert";
  readonly text: string;
}

/** Files in one patch. */
export const patchFileLimit = 100;

const beginMark = "*** Begin Patch";
const endMark = "*** End Patch";
const endOfFileMark = "*** End of File";
const addMark = "*** Add File:";
const updateMark = "*** Update File:";
const deleteMark = "*** Delete File:";
const moveMark = "*** Move to:";
const fileMarks = [addMark, updateMark, deleteMark];

/** Reads the patch format. Throws {@link ToolFailure} that names the line which is wrong. */
export function parsePatch(patchText: string): FilePatch[] {
  const lines = new PatchLines(patchText);
  const patches: FilePatch[] = [];
  while (!lines.isDone()) patches.push(parseFile(lines));
  if (patches.length === 0) throw new ToolFailure("The patch names no file. Nothing was changed.");
  if (patches.length <= patchFileLimit) return patches;
  throw new ToolFailure(
    `The patch names ${patches.length} files; one patch takes ${patchFileLimit}. Send it in parts.`,
  );
}

/** The lines between the marks of beginning and end, with a place to read at. */
class PatchLines {
  readonly #lines: readonly string[];
  readonly #end: number;
  #at: number;

  constructor(patchText: string) {
    this.#lines = patchText.replaceAll("\r\n", "\n").split("\n");
    const isMark = (mark: string) => (line: string) => line.trim() === mark;
    const begin = this.#lines.findIndex(isMark(beginMark));
    this.#end = this.#lines.findLastIndex(isMark(endMark));
    if (begin === -1) throw new ToolFailure(`A patch begins with the line "${beginMark}". ${unchanged}`);
    if (this.#end < begin) throw new ToolFailure(`A patch ends with the line "${endMark}". ${unchanged}`);
    this.#at = begin + 1;
  }

  isDone(): boolean {
    return this.#at >= this.#end;
  }

  peek(): string | undefined {
    return this.isDone() ? undefined : this.#lines[this.#at];
  }

  take(): string {
    return this.#lines[this.#at++] ?? "";
  }

  /** The line is the one that was taken last. */
  fail(problem: string): never {
    const line = this.#lines[this.#at - 1] ?? "";
    throw new ToolFailure(`Line ${this.#at} of the patch: ${problem}: ${JSON.stringify(line)}. ${unchanged}`);
  }
}

const unchanged = "Nothing was changed.";

function parseFile(lines: PatchLines): FilePatch {
  const line = lines.take();
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
  for (let next = lines.peek(); next !== undefined && !isFileMark(next); next = lines.peek()) {
    const line = lines.take();
    if (line.startsWith("+")) text += `${line.slice(1)}\n`;
    else if (line.trim() !== "" || !isFollowedByFile(lines))
      return lines.fail('each line of a new file begins with "+"');
  }
  return text;
}

/** Blank lines between two files are no part of either. */
function isFollowedByFile(lines: PatchLines): boolean {
  skipBlankLines(lines);
  const next = lines.peek();
  return next === undefined || isFileMark(next);
}

function skipBlankLines(lines: PatchLines): void {
  while (lines.peek()?.trim() === "") lines.take();
}

function parseUpdate(lines: PatchLines, path: string): FilePatch {
  const movePath = parseMove(lines);
  const hunks: Hunk[] = [];
  for (let next = lines.peek(); next !== undefined && !isFileMark(next); next = lines.peek()) {
    const hunk = parseHunk(lines);
    if (hunk !== undefined) hunks.push(hunk);
  }
  if (hunks.length === 0 && movePath === undefined) return lines.fail("the update changes nothing");
  return { kind: "update", path, hunks, ...(movePath !== undefined && { movePath }) };
}

function parseMove(lines: PatchLines): string | undefined {
  if (!lines.peek()?.startsWith(moveMark)) return undefined;
  const path = lines.take().slice(moveMark.length).trim();
  return path === "" ? lines.fail("the path is missing") : path;
}

/** Undefined where only blank lines were left. */
function parseHunk(lines: PatchLines): Hunk | undefined {
  const anchors = parseAnchors(lines);
  const body: HunkLine[] = [];
  let blanks = 0;
  let atEnd = false;
  for (let next = lines.peek(); next !== undefined && !endsHunk(next); next = lines.peek()) {
    if (next.trimEnd() === endOfFileMark) {
      lines.take();
      atEnd = true;
      break;
    }
    const line = parseHunkLine(lines);
    blanks = next === "" ? blanks + 1 : 0;
    body.push(line);
  }
  // Models put empty lines between two hunks; at a hunk's end they stand for nothing.
  const meant = body.slice(0, body.length - blanks);
  if (atEnd) skipBlankLines(lines);
  if (meant.length === 0 && anchors.length === 0 && !atEnd) return undefined;
  if (meant.every(({ kind }) => kind === "keep"))
    return lines.fail("the hunk that ends here changes nothing");
  return { anchors, lines: meant, atEnd };
}

function parseAnchors(lines: PatchLines): string[] {
  const anchors: string[] = [];
  while (lines.peek()?.startsWith("@@")) {
    const anchor = anchorOf(lines.take());
    if (anchor !== "") anchors.push(anchor);
  }
  return anchors;
}

/** Line numbers, as other formats of patches have them, say nothing here. */
function anchorOf(line: string): string {
  const numbered = /^@@ -\d+(?:,\d+)? \+\d+(?:,\d+)? @@ ?(.*)$/.exec(line);
  const text = numbered?.[1] ?? line.slice(2).replace(/^ /, "");
  return text.trim() === "" || text.trim() === "@@" ? "" : text;
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
      return lines.fail('a line of a hunk begins with a blank, "+" or "-"');
  }
}

function endsHunk(line: string): boolean {
  return line.startsWith("@@") || isFileMark(line);
}

function isFileMark(line: string): boolean {
  return fileMarks.some((mark) => line.startsWith(mark));
}
