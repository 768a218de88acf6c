import { lstat, stat } from "node:fs/promises";
import { type Position, splitLines } from "../../lsp/connection/positions.ts";
import { type EditStep, type TextEdit, toPath } from "../../lsp/server-answers.ts";
import type { ResolvedPath } from "../../workspace/paths.ts";
import { compareTexts } from "../diff.ts";
import type { FilePlan } from "../patch/file-plan.ts";
import { resolveToolPath, titleOf } from "../paths.ts";
import {
  editLimitBytes,
  encodeText,
  explainFileErrors,
  loadTextFile,
  newFileFormat,
  type TextFile,
} from "../text-file.ts";
import { type ToolContext, ToolFailure } from "../tool.ts";

/** Maximum number of files in one edit. */
const fileLimit = 200;

const unchanged = "Nothing was changed.";

/** A file as the steps so far would leave it. */
interface PlannedFile {
  readonly resolved: ResolvedPath;
  readonly before: (TextFile & { readonly mode: number }) | undefined;
  /** Undefined if the file does not exist then. */
  text: string | undefined;
  /** The file from which its text was moved. */
  movedFrom: PlannedFile | undefined;
}

/**
 * Plans the changes of a language server's edit. Changes nothing. Throws {@link ToolFailure} if a step cannot be made
 * whole: half an edit would break the project.
 */
export async function planWorkspaceEdit(
  context: ToolContext,
  steps: readonly EditStep[],
): Promise<FilePlan[]> {
  const files = new PlannedFiles(context);
  for (const step of steps) await applyStep(files, step, context);
  return files.toPlans();
}

async function applyStep(files: PlannedFiles, step: EditStep, context: ToolContext): Promise<void> {
  const file = await files.get(step.uri);
  const name = titleOf(context, file.resolved);
  switch (step.type) {
    case "edit":
      if (file.text === undefined)
        throw new ToolFailure(`The server edits ${name}, which does not exist. ${unchanged}`);
      file.text = applyTextEdits(file.text, step.edits, name);
      return;
    case "create":
      if (file.text !== undefined && !step.overwrite) {
        if (step.ignoreIfExists) return;
        throw new ToolFailure(`The server creates ${name}, which exists already. ${unchanged}`);
      }
      file.text = "";
      return;
    case "rename": {
      const from = await files.get(step.from);
      if (from.text === undefined)
        throw new ToolFailure(
          `The server renames ${titleOf(context, from.resolved)}, which does not exist. ${unchanged}`,
        );
      if (file.text !== undefined && !step.overwrite) {
        if (step.ignoreIfExists) return;
        throw new ToolFailure(`The server renames a file to ${name}, which exists already. ${unchanged}`);
      }
      await assertNoLink(from, context);
      file.text = from.text;
      file.movedFrom = from.movedFrom ?? from;
      from.text = undefined;
      from.movedFrom = undefined;
      return;
    }
    case "delete":
      if (file.text === undefined && !step.ignoreIfMissing)
        throw new ToolFailure(`The server deletes ${name}, which does not exist. ${unchanged}`);
      await assertNoLink(file, context);
      file.text = undefined;
  }
}

/** Rejects links: the target would be removed, and the link would stay broken. */
async function assertNoLink({ resolved, before }: PlannedFile, context: ToolContext): Promise<void> {
  if (before === undefined || !(await lstat(resolved.unresolved)).isSymbolicLink()) return;
  throw new ToolFailure(`The server moves or deletes the link ${titleOf(context, resolved)}. ${unchanged}`);
}

/** The files of an edit, loaded on first use, by real path. */
class PlannedFiles {
  readonly #context: ToolContext;
  readonly #files = new Map<string, PlannedFile>();

  constructor(context: ToolContext) {
    this.#context = context;
  }

  async get(uri: string): Promise<PlannedFile> {
    const path = toPath(uri);
    if (path === undefined)
      throw new ToolFailure(`The server changes ${uri}, which is not a file. ${unchanged}`);
    const resolved = await resolveToolPath(this.#context, path);
    const known = this.#files.get(resolved.path);
    if (known !== undefined) return known;
    if (this.#files.size >= fileLimit)
      throw new ToolFailure(
        `This changes more than ${fileLimit} files. Use a command (sed, a script) instead. ${unchanged}`,
      );
    const file = await this.#load(resolved);
    this.#files.set(resolved.path, file);
    return file;
  }

  async #load(resolved: ResolvedPath): Promise<PlannedFile> {
    const { path, kind, exists } = resolved;
    if (kind === "directory")
      throw new ToolFailure(
        `The server changes the folder ${titleOf(this.#context, resolved)}; only files can be changed. ${unchanged}`,
      );
    if (!exists) return { resolved, before: undefined, text: undefined, movedFrom: undefined };
    const before = await loadTextFile(this.#context.workspace, path);
    const { mode } = await explainFileErrors(path, () => stat(path));
    return { resolved, before: { ...before, mode: mode & 0o777 }, text: before.text, movedFrom: undefined };
  }

  toPlans(): FilePlan[] {
    const files = [...this.#files.values()];
    const moved = new Set(
      files.flatMap(({ movedFrom, before }) => (before === undefined ? (movedFrom ?? []) : [])),
    );
    return files
      .filter((file) => !moved.has(file) || file.text !== undefined)
      .flatMap((file) => toPlan(file));
  }
}

/** Returns no plan for a file that stays as it is. */
function toPlan({ resolved, before, text, movedFrom }: PlannedFile): FilePlan[] {
  if (text === undefined) {
    if (before === undefined) return [];
    return [
      {
        operation: "delete",
        from: resolved,
        before,
        comparison: compareTexts(before.text, ""),
        tolerated: [],
      },
    ];
  }
  if (text === before?.text) return [];
  const source = before ?? movedFrom?.before;
  const comparison = compareTexts(source?.text ?? null, text);
  const after = { text, bytes: encodeText(text, source?.format ?? newFileFormat) };
  if (after.bytes.byteLength > editLimitBytes)
    throw new ToolFailure(`${resolved.path} would be larger than ${editLimitBytes} bytes. ${unchanged}`);
  const change = { after, comparison, tolerated: [] };
  if (before !== undefined) return [{ operation: "update", from: resolved, to: resolved, before, ...change }];
  // A file whose old place has a new text is a copy.
  if (movedFrom?.before === undefined || movedFrom.text !== undefined)
    return [{ operation: "add", to: resolved, ...change }];
  return [{ operation: "move", from: movedFrom.resolved, to: resolved, before: movedFrom.before, ...change }];
}

/** Applies edits that refer to the same text and do not overlap. Throws {@link ToolFailure} for others. */
export function applyTextEdits(text: string, edits: readonly TextEdit[], name: string): string {
  const starts = lineStarts(text);
  const placed = edits.map(({ range, newText }, index) => ({
    start: toOffset(text, starts, range.start, name),
    end: toOffset(text, starts, range.end, name),
    newText,
    index,
  }));
  // Insertions at one place keep the server's order.
  const sorted = placed.toSorted(
    (one, other) => one.start - other.start || one.end - other.end || one.index - other.index,
  );
  const parts: string[] = [];
  let at = 0;
  for (const { start, end, newText } of sorted) {
    if (start < at || end < start)
      throw new ToolFailure(`The server sent edits of ${name} that overlap. ${unchanged}`);
    parts.push(text.slice(at, start), newText);
    at = end;
  }
  return [...parts, text.slice(at)].join("");
}

/** Offsets at which lines begin, as the protocol counts them. */
function lineStarts(text: string): number[] {
  const starts = [0];
  for (const { index, 0: end } of text.matchAll(/\r\n|\n|\r/g)) starts.push(index + end.length);
  return starts;
}

/** Columns beyond the end of a line mean its end. */
function toOffset(
  text: string,
  starts: readonly number[],
  { line, character }: Position,
  name: string,
): number {
  const start = starts[line];
  // A range may end at the beginning of the line after the last one.
  if (start === undefined && line === starts.length && character === 0) return text.length;
  if (start === undefined)
    throw new ToolFailure(
      `The server edits line ${line + 1} of ${name}, which has ${starts.length} lines: it knows another text. ${unchanged}`,
    );
  const [content = ""] = splitLines(text.slice(start, starts[line + 1] ?? text.length));
  return start + Math.min(character, content.length);
}
