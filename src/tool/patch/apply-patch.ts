import { lstat, stat } from "node:fs/promises";
import { z } from "zod";
import description from "../../../prompts/tools/apply_patch.md";
import type { ResolvedPath } from "../../workspace/paths.ts";
import { compareTexts } from "../diff.ts";
import { describeResult, type FilePlan, pathsOf, preparePlans, titleOfPlans } from "./file-plan.ts";
import { runWithMatchLimit } from "../edit/match-time.ts";
import { applyHunks } from "./patch-match.ts";
import type { PatchedText } from "./patch-match.ts";
import { parsePatch } from "./patch.ts";
import type { FilePatch, Hunk } from "./patch.ts";
import {
  failAfterReading,
  missingPathMessage,
  resolveToolPath,
  titleOf,
  getOutsideAccess,
} from "../paths.ts";
import {
  editLimitBytes,
  encodeText,
  explainFileErrors,
  assertNotDeleted,
  findUnseen,
  loadTextFile,
  newFileFormat,
  requireSeen,
} from "../text-file.ts";
import type { TextFile, TextFormat, Unseen } from "../text-file.ts";
import { defineTool, ToolFailure } from "../tool.ts";
import type { ToolContext } from "../tool.ts";

const inputSchema = z.object({
  patchText: z.string().describe('The whole patch, from "*** Begin Patch" to "*** End Patch"'),
});
type Input = z.infer<typeof inputSchema>;

export const applyPatchTool = defineTool<Input>({
  name: "apply_patch",
  otherNames: ["patch", "apply_diff", "applypatch"],
  aliases: {
    patchText: ["patch", "input", "diff", "patch_content"],
  },
  description,
  input: inputSchema,
  kind: "edit",
  concurrency: "exclusive",
  access: ({ patchText }, context) =>
    getOutsideAccess(context, parsePatch(patchText).flatMap(getNamedPaths), {
      verb: "Edit",
      permission: "edit",
    }),
  async prepare({ patchText }, context) {
    const plans: FilePlan[] = [];
    for (const patch of parsePatch(patchText)) {
      const planned = await planFile(context, patch);
      if ("problem" in planned) return failAfterReading(context, planned.resolved, planned.problem);
      plans.push(...planned);
    }
    assertDistinct(plans);
    return preparePlans(context, plans, {
      title: titleOfPlans(context, plans),
      describe: (results) => results.map((result) => describeResult(context, result)).join("\n\n"),
    });
  },
});

/** Returns the paths as written in the patch. */
function getNamedPaths(patch: FilePatch): string[] {
  return patch.kind === "update" && patch.movePath !== undefined
    ? [patch.path, patch.movePath]
    : [patch.path];
}

/** A patch that does not fit a file that the model may not know. */
interface UnseenProblem {
  readonly resolved: ResolvedPath;
  readonly problem: string;
}

async function planFile(context: ToolContext, patch: FilePatch): Promise<FilePlan[] | UnseenProblem> {
  switch (patch.kind) {
    case "add":
      return [await planAdd(context, patch.path, patch.text)];
    case "delete":
      return [await planDelete(context, patch.path)];
    case "update":
      return planUpdate(context, patch);
  }
}

async function planAdd(context: ToolContext, path: string, text: string): Promise<FilePlan> {
  const to = await resolveToolPath(context, path);
  if (to.exists) return planReplace(context, path, text);
  await assertNotDeleted(context, to.path);
  const after = encodeWithinLimit(path, text, newFileFormat);
  return { operation: "add", to, after, comparison: compareTexts(null, text), tolerated: [] };
}

/** Replaces an existing file if the model has read it; undo restores the old text. */
async function planReplace(context: ToolContext, path: string, text: string): Promise<FilePlan> {
  const { from, before } = await loadOld(context, path, `${path} exists already. `);
  const lines = before.format.lineEnd === "\r\n" ? text.replaceAll(/\r?\n/g, "\r\n") : text;
  const after = encodeWithinLimit(path, lines, before.format);
  const comparison = compareTexts(before.text, lines);
  return { operation: "update", from, to: from, before, after, comparison, tolerated: [] };
}

async function planDelete(context: ToolContext, path: string): Promise<FilePlan> {
  const { from, before } = await loadOld(context, path);
  await assertNoLink(context, path, from);
  return { operation: "delete", from, before, comparison: compareTexts(before.text, ""), tolerated: [] };
}

async function planUpdate(
  context: ToolContext,
  { path, movePath, hunks, later = [] }: FilePatch & { kind: "update" },
): Promise<FilePlan[] | UnseenProblem> {
  const { from, before } = await loadExisting(context, path);
  const unseen = await findUnseen(context, before);
  const patched = patchText(path, before, [hunks, ...later], unseen);
  if ("problem" in patched) return { ...patched, resolved: from };
  const { text, tolerated } = patched;
  const after = encodeWithinLimit(path, text, before.format);
  const changed = { from, before, after, comparison: compareTexts(before.text, text), tolerated, unseen };
  if (movePath !== undefined) {
    await assertNoLink(context, path, from);
    const to = await resolveToolPath(context, movePath);
    if (!to.exists) return [{ ...changed, operation: "move", to }];
    if (unseen !== undefined) return { problem: unseen.problem, resolved: from };
    if (to.path !== from.path) return planMoveOver(context, { from, before, text, tolerated }, movePath);
  }
  if (text === before.text)
    throw new ToolFailure(
      `${path}: the patch leaves it as it is. ${unchanged} If the file is right already, go on without it.`,
    );
  return [{ ...changed, operation: "update", to: from }];
}

type MovedFile = Required<Pick<FilePlan, "from" | "before" | "tolerated">> & { readonly text: string };

/** Overwrites the existing target and deletes the moved file. */
async function planMoveOver(
  context: ToolContext,
  { from, before, text, tolerated }: MovedFile,
  movePath: string,
): Promise<FilePlan[]> {
  const { from: to, before: replaced } = await loadOld(context, movePath, `${movePath} exists already. `);
  const comparison = compareTexts(replaced.text, text);
  const after = encodeWithinLimit(movePath, text, before.format);
  const gone = { from, before, comparison: compareTexts(before.text, ""), tolerated: [] };
  return [
    { operation: "update", from: to, to, before: replaced, after, comparison, tolerated },
    { operation: "delete", ...gone },
  ];
}

/** Applies the sections. In a file that the model may not know, only exact, unique lines are accepted. */
function patchText(
  path: string,
  before: TextFile,
  sections: readonly (readonly Hunk[])[],
  unseen: Unseen | undefined,
): PatchedText | Pick<UnseenProblem, "problem"> {
  try {
    const patched = prefixErrorsWithPath(path, () => applySections(before, sections));
    return unseen === undefined || (patched.isKnown && !unseen.isChangedByOther) ? patched : unseen;
  } catch (error) {
    if (unseen === undefined || !(error instanceof ToolFailure)) throw error;
    return { problem: `${unseen.problem} ${error.message}` };
  }
}

/** Applies the sections in order; hunks are numbered across all of them. */
function applySections({ text, format }: TextFile, sections: readonly (readonly Hunk[])[]): PatchedText {
  let patched: PatchedText = { text, tolerated: [], isKnown: true };
  let count = 0;
  for (const hunks of sections) {
    const { text: current, tolerated } = patched;
    const done = runWithMatchLimit(current.length, sizeOf(hunks), () =>
      applyHunks(current, hunks, format.lineEnd),
    );
    const numbers = done.tolerated.map((number) => number + count);
    const isKnown = patched.isKnown && done.isKnown;
    patched = { text: done.text, tolerated: [...tolerated, ...numbers], isKnown };
    count += hunks.length;
  }
  return patched;
}

/** Characters in all hunks. */
function sizeOf(hunks: readonly Hunk[]): number {
  return hunks.flatMap(({ lines }) => lines).reduce((sum, { text }) => sum + text.length + 1, 0);
}

function encodeWithinLimit(path: string, text: string, format: TextFormat) {
  const bytes = prefixErrorsWithPath(path, () => encodeText(text, format));
  if (bytes.byteLength <= editLimitBytes) return { text, bytes };
  throw new ToolFailure(
    `${path} would be larger than ${editLimitBytes} bytes. Make it with a command. ${unchanged}`,
  );
}

const unchanged = "Nothing was changed.";

/** Loads a file that the model knows. `why` is put before the message for one that was not read. */
async function loadOld(context: ToolContext, path: string, why = "") {
  const loaded = await loadExisting(context, path);
  await requireSeen(context, loaded.before, why);
  return loaded;
}

async function loadExisting(context: ToolContext, path: string) {
  const from = await resolveToolPath(context, path);
  if (from.kind === "directory") throw new ToolFailure(`${path} is a folder. Give the path of a file.`);
  if (!from.exists) throw new ToolFailure(await missingPathMessage(context, from, path));
  const before = await loadTextFile(context.workspace, from.path);
  const { mode } = await explainFileErrors(from.path, () => stat(from.path));
  return { from, before: { ...before, mode: mode & 0o777 } };
}

/** Rejects links: the target would be removed, and the link would stay broken. */
async function assertNoLink(context: ToolContext, path: string, from: ResolvedPath): Promise<void> {
  if (!(await lstat(from.unresolved)).isSymbolicLink()) return;
  throw new ToolFailure(
    `${path} is a link to ${titleOf(context, from)}. Name that file if it is meant, or change the link with a command. ${unchanged}`,
  );
}

/** Adds the path to the messages of failures. */
function prefixErrorsWithPath<T>(path: string, task: () => T): T {
  try {
    return task();
  } catch (error) {
    if (error instanceof ToolFailure) throw new ToolFailure(`${path}: ${error.message}`, { cause: error });
    throw error;
  }
}

/** Rejects two changes of one file, because each would be computed without the other. */
function assertDistinct(plans: readonly FilePlan[]): void {
  const known = new Set<string>();
  for (const path of plans.flatMap(pathsOf)) {
    if (known.has(path))
      throw new ToolFailure(
        `The patch names ${path} more than once. Put all its changes in one section. ${unchanged}`,
      );
    known.add(path);
  }
}
