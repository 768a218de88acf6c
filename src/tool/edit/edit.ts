import { titleOfPath } from "../../base/text/call-titles.ts";
import { z } from "zod";
import description from "../../../prompts/tools/edit.md";
import type { FileChange } from "../../message/part.ts";
import type { ResolvedPath } from "../../workspace/paths.ts";
import { compareTexts } from "../diff.ts";
import type { Comparison } from "../diff.ts";
import { applyEdit } from "./edit-match.ts";
import type { Edit, EditOutcome } from "./edit-match.ts";
import { splitLines } from "./match-source.ts";
import { describeNearest } from "./nearest-lines.ts";
import { replaceLimit, type Strategy } from "./match-strategies.ts";
import { runWithMatchLimit } from "./match-time.ts";
import {
  failAfterReading,
  missingPathMessage,
  otherNamesOfPath,
  requirePlainPath,
  pathPermissions,
  resolveToolPath,
  titleOf,
  getOutsideAccess,
} from "../paths.ts";
import {
  assertNotDeleted,
  changedNote,
  findUnseen,
  isProof,
  loadTextFile,
  lockFiles,
  saveText,
  StaleFailure,
} from "../text-file.ts";
import type { TextFile, Unseen } from "../text-file.ts";
import { defineTool, ToolFailure } from "../tool.ts";
import type { PreparedCall, RunContext, ToolContext, ToolResult } from "../tool.ts";

const editFields = {
  oldString: z
    .string()
    .describe("The text to replace, exactly as it is in the file; empty only to create a new file"),
  newString: z.string().describe("The text to put in its place"),
  replaceAll: z
    .boolean()
    .optional()
    .describe("Replace every occurrence of the old text; false when left out"),
};

/** Other names of an edit's texts: keys of other agents' tools, which models use. */
export const otherNamesOfTexts = {
  oldString: ["old_str", "old_string", "old_text", "search", "old", "find", "search_text", "original"],
  newString: [
    "new_str",
    "new_string",
    "new_text",
    "replace",
    "new",
    "replacement",
    "replace_text",
    "updated",
  ],
};

export const editSchema = z.object(editFields);

export const editedPathSchema = z
  .string()
  .describe("The file to change: absolute, relative to the working directory, or with ~");

// The path comes first, because models write fields in this order.
const inputSchema = z.object({ filePath: editedPathSchema, ...editFields });
type Input = z.infer<typeof inputSchema>;

export const editTool = defineTool<Input>({
  name: "edit",
  otherNames: [
    "edit_file",
    "str_replace",
    "replace",
    "replace_in_file",
    "string_replace",
    "search_replace",
    "modify_file",
    "file_edit",
  ],
  aliases: {
    filePath: otherNamesOfPath,
    ...otherNamesOfTexts,
    replaceAll: ["all", "global", "replace_all_occurrences"],
  },
  description,
  input: inputSchema,
  kind: "edit",
  concurrency: "exclusive",
  access: ({ filePath }, context) =>
    getOutsideAccess(context, [filePath], { verb: "Edit", permission: "edit" }),
  prepare: ({ filePath, ...edit }, context) => prepareEdits(context, filePath, [edit]),
});

/** Prepares edits of one file: in order, all or nothing. Throws {@link ToolFailure} if one of them does not match. */
export async function prepareEdits(
  context: ToolContext,
  filePath: string,
  edits: readonly Edit[],
): Promise<PreparedCall> {
  const resolved = await resolveToolPath(context, filePath);
  const before = await loadBefore(context, resolved, filePath, edits);
  const unseen = before && (await findUnseen(context, before));
  if (unseen !== undefined) return prepareUnseen(context, { resolved, before, edits, unseen });
  return createCall(context, { resolved, before, edited: editText(before?.text, edits), edits });
}

/** Prepares edits of a file that the model may not know: only exact, unique text is accepted. */
function prepareUnseen(
  context: ToolContext,
  target: Omit<PreparedEdits, "edited"> & { unseen: Unseen },
): PreparedCall {
  const { resolved, before, edits, unseen } = target;
  if (unseen.isChangedByOther) return failAfterReading(context, resolved, unseen.problem);
  try {
    const edited = editText(before?.text, edits);
    const isKnown = edited.matches.every(({ strategy, places }) => strategy === "exact" && places === 1);
    if (isKnown && edits.every(({ oldString }) => isProof(oldString)))
      return createCall(context, { ...target, edited });
    const nearest =
      edits.length === 1 ? describeNearest(before?.text ?? "", edits[0]?.oldString ?? "") : undefined;
    return failAfterReading(context, resolved, [unseen.problem, nearest ?? ""].join(" ").trim());
  } catch (error) {
    if (!(error instanceof ToolFailure)) throw error;
    return failAfterReading(context, resolved, `${unseen.problem} ${error.message}`);
  }
}

function createCall(context: ToolContext, prepared: PreparedEdits): PreparedCall {
  const { resolved, before, edited, unseen } = prepared;
  const { path } = resolved;
  const reading = pathPermissions(context, resolved, "read").filter(
    ({ permission }) => permission === "read",
  );
  return {
    title: titleOfPath("Edit", titleOf(context, resolved), before === undefined ? "new" : ""),
    locations: [{ path, line: edited.comparison.firstLine }],
    preview: { diffs: [{ path, oldText: before?.text ?? null, newText: edited.text }] },
    // A match reveals the content of the file.
    permissions: [...pathPermissions(context, resolved, "edit"), ...(unseen === undefined ? [] : reading)],
    run: (run) => runEdits(context, prepared, run),
  };
}

interface EditedText {
  readonly text: string;
  readonly comparison: Comparison;
  /** One per edit. */
  readonly matches: readonly Match[];
}

interface Match {
  readonly strategy: Strategy;
  readonly places: number;
  /** The new text's missing indentation was added. */
  readonly indented?: boolean;
}

interface PreparedEdits {
  readonly resolved: ResolvedPath;
  readonly before: TextFile | undefined;
  readonly edited: EditedText;
  readonly edits: readonly Edit[];
  readonly unseen?: Unseen | undefined;
}

async function loadBefore(
  context: ToolContext,
  resolved: ResolvedPath,
  raw: string,
  [first]: readonly Edit[],
): Promise<TextFile | undefined> {
  if (resolved.kind === "directory") throw new ToolFailure(`${raw} is a folder. Give the path of a file.`);
  if (resolved.exists) return loadTextFile(context.workspace, resolved.path);
  if (first?.oldString === "") {
    await requirePlainPath(context, raw);
    await assertNotDeleted(context, resolved.path);
    return undefined;
  }
  throw new ToolFailure(await missingPathMessage(context, resolved, raw));
}

/** Applies the edits; `before` is undefined if the file does not exist yet. */
function editText(before: string | undefined, edits: readonly Edit[]): EditedText {
  let text = before;
  const matches: Match[] = [];
  for (const [index, edit] of edits.entries()) {
    const replaced = replaceIn(
      text,
      edit,
      edits.length === 1 ? "" : `Edit ${index + 1} of ${edits.length}: `,
    );
    text = replaced.text;
    matches.push(replaced);
  }
  if (text === undefined || text === before)
    throw new ToolFailure(`The edits leave the file as it is. ${nothingDone} ${goOn}`);
  return { text, comparison: compareTexts(before ?? null, text), matches };
}

function replaceIn(text: string | undefined, edit: Edit, which: string): Match & { text: string } {
  if (edit.oldString === edit.newString)
    throw new ToolFailure(`${which}oldString and newString are the same. ${nothingDone} ${goOn}`);
  if (text === undefined) return { text: edit.newString, strategy: "exact", places: 1 };
  if (edit.oldString === "")
    throw new ToolFailure(`${which}oldString is empty, but the file exists. ${emptyHint}`);
  const outcome = runWithMatchLimit(text.length, edit.oldString.length, () => applyEdit(text, edit));
  if (outcome.outcome === "replaced") return { ...outcome, places: outcome.spans.length };
  throw new ToolFailure(`${which}${describeProblem(outcome, edit, text)} ${nothingDone}`);
}

const nothingDone = "Nothing was changed.";
const goOn = "If the file is right already, go on; otherwise give another newString.";
const emptyHint = "Give the text to replace, or use write to replace the whole file.";

function describeProblem(
  outcome: Exclude<EditOutcome, { outcome: "replaced" }>,
  edit: Edit,
  text: string,
): string {
  if (outcome.outcome === "ambiguous") return describeAmbiguity(outcome);
  if (outcome.outcome === "tooMany")
    return `oldString was found in more than ${replaceLimit} places. Use a command (sed, a script) instead.`;
  if (outcome.outcome === "missing")
    return `oldString not found in file. ${missingHint(edit.oldString, text)}`;
  return `oldString not found in file; the closest match, at line ${outcome.line}, is much longer. Read the file there and give the exact text.`;
}

function missingHint(oldString: string, text: string): string {
  const lines = splitLines(oldString);
  if (lines.every((line) => /^\s*\d+(?:: |\t|\| ?|→)/.test(line)))
    return "It begins with the line numbers that read shows: leave them out.";
  if (
    lines.length > 1 &&
    lines.every((line) => /^[-+ ]/.test(line)) &&
    lines.some((line) => /^[-+]/.test(line))
  )
    return "Its lines begin with the signs of a diff: give the text of the file without them.";
  const placeholder = lines.find((line) =>
    /^\W*\.\.\.\s*(?:existing|rest|other|remaining|unchanged)\b/i.test(line),
  );
  if (placeholder !== undefined)
    return `${JSON.stringify(placeholder.trim())} is not in the file: give the real lines, or one edit for each side of the gap.`;
  return (
    describeNearest(text, oldString) ??
    "No line of the file is like it. Look for the place with grep, then read it and copy the text exactly."
  );
}

const shownPlaces = 10;

function describeAmbiguity({
  strategy,
  lines,
  more,
}: Extract<EditOutcome, { outcome: "ambiguous" }>): string {
  const verb = strategy === "exact" ? "was found" : "was found approximately";
  const shown = lines.slice(0, shownPlaces).join(", ");
  const rest = more || lines.length > shownPlaces ? " and others" : "";
  const number = more ? `more than ${lines.length}` : `${lines.length > 1 ? lines.length : "several"}`;
  return `oldString ${verb} in ${number} places (line ${shown}${rest}). Give more of the text around the one you mean, or set replaceAll.`;
}

async function runEdits(
  context: ToolContext,
  prepared: PreparedEdits,
  { signal }: RunContext,
): Promise<ToolResult> {
  const { path } = prepared.resolved;
  const { change, edited, note } = await lockFiles(context, [path], async () => {
    signal.throwIfAborted();
    const current = await rebaseEdits(context, prepared);
    const { text, comparison } = current.edited;
    const wanted = { path, before: current.before, text, comparison };
    return { ...(await saveText(context, wanted)), edited: current.edited };
  });
  const unread = prepared.unseen?.hasChanged === true ? changedNote : "";
  const notes = [unread, note].filter((one) => one !== "").map((one) => `\n\n${one}`);
  return {
    status: "completed",
    output: `${describeEdits(titleOf(context, prepared.resolved), change, edited)}${notes.join("")}`,
    changes: [change],
  };
}

/** Applies the edits to the current text if an earlier edit of the same step changed the file. */
async function rebaseEdits(context: ToolContext, prepared: PreparedEdits): Promise<PreparedEdits> {
  const { before, edits, resolved } = prepared;
  if (before === undefined) return prepared;
  const current = await loadTextFile(context.workspace, resolved.path);
  if (current.hash === before.hash) return prepared;
  if (context.seen.get(resolved.path) !== current.hash) throw new StaleFailure(resolved.path);
  return { ...prepared, before: current, edited: editText(current.text, edits) };
}

function describeEdits(title: string, change: FileChange, { comparison, matches }: EditedText): string {
  const summary = change.operation === "add" ? `Created ${title}` : `Changed ${title}`;
  const counts = `+${change.additions} -${change.deletions} lines`;
  const head = `${summary} (${counts}).${matchNotes(matches)}`;
  return comparison.excerpt === "" ? head : `${head}\n\n${comparison.excerpt}`;
}

function matchNotes(matches: readonly Match[]): string {
  const strategies = new Set(matches.map(({ strategy }) => strategy));
  const tolerant = [...strategies].filter((strategy) => strategy !== "exact");
  const notes = [
    ...(tolerant.length === 0
      ? []
      : [`oldString was not found exactly; it was matched by ${tolerant.join(", ")}: check the result.`]),
    ...(matches.some(({ indented }) => indented)
      ? ["newString had no indentation and was given that of the lines it replaces: check the result."]
      : []),
  ];
  return notes.map((note) => ` ${note}`).join("");
}
