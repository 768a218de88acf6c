import { codeOf, messageOf } from "../base/errors.ts";
import { StaleFile } from "../workspace/files/files.ts";
import { isInside, resolvePath } from "../workspace/paths.ts";
import type { Workspace } from "../workspace/workspace.ts";
import type { FileStep } from "../conversation/checkpoints.ts";

/**
 * How far one file can be reverted, and between which contents.
 * - `left`: the content that the agent left; `back`: the content to restore. Both are content hashes; null is "no
 *   such file".
 * - `reach`: "whole" goes back to the start. The others stop where somebody else changed the file between two
 *   changes of the agent, or where a content was too large to store.
 */
export type FileRevert = { readonly path: string; readonly mode?: number } & (
  | {
      readonly reach: "whole" | "until-edited" | "until-not-kept";
      readonly left: string | null;
      readonly back: string | null;
    }
  | { readonly reach: "none" }
);

export type FileOutcome = "changed" | "made" | "removed" | "unchanged" | { readonly kept: string };

/** Plans how to undo the steps, given oldest first. Sorted by path. */
export function planRevert(steps: readonly FileStep[]): FileRevert[] {
  const byPath = Map.groupBy(steps, ({ path }) => path);
  const reverts = [...byPath].map(([path, own]) => ({ ...planFile(path, own), ...findMode(own) }));
  return reverts.sort((one, other) => (one.path < other.path ? -1 : 1));
}

/** Returns the mode from the first step that has one. */
function findMode(steps: readonly FileStep[]): { mode?: number } {
  const mode = steps.find((step) => step.mode !== undefined)?.mode;
  return mode === undefined ? {} : { mode };
}

/** Swaps the contents, to redo a reverted file. */
export function reverse(revert: FileRevert): FileRevert {
  return revert.reach === "none" ? revert : { ...revert, left: revert.back, back: revert.left };
}

/**
 * Replaces `left` by `back` if the disk has exactly `left`. Repeatable: does nothing if the disk has `back`. Returns
 * the reason if the file is left unchanged.
 */
export async function revertFile(
  workspace: Workspace,
  { path, left, back, mode }: Replacement,
): Promise<FileOutcome> {
  if (left === back) return "unchanged";
  try {
    const obstacle = await obstacleAt(workspace, path);
    if (obstacle !== undefined) return { kept: obstacle };
    return await workspace.files.lock([path], () => replace(workspace, { path, left, back, mode }));
  } catch (error) {
    return { kept: messageOf(error) };
  }
}

interface Replacement {
  readonly path: string;
  readonly left: string | null;
  readonly back: string | null;
  /** Mode of a created file; the default unless given. */
  readonly mode?: number | undefined;
}

function planFile(path: string, steps: readonly FileStep[]): FileRevert {
  const left = steps.at(-1)?.after;
  if (left === undefined) return { path, reach: "none" };
  let back = left;
  for (const [index, { before, after }] of steps.toReversed().entries()) {
    if (after === undefined || before === undefined)
      return index === 0 ? { path, reach: "none" } : { path, reach: "until-not-kept", left, back };
    if (after !== back) return { path, reach: "until-edited", left, back };
    back = before;
  }
  return { path, reach: "whole", left, back };
}

/** Returns why the path cannot be written, as tools would: it leads elsewhere now, or out of the workspace. */
async function obstacleAt(workspace: Workspace, path: string): Promise<string | undefined> {
  const now = await resolvePath(path, workspace);
  if (now.path !== path) return `the path now leads to ${now.path}`;
  if (!isInside(path, workspace.roots)) return "it is outside the workspace";
  if (now.kind === "directory") return "it is now a folder";
  return now.kind === "special" ? "it is no longer a regular file" : undefined;
}

async function replace(
  { files, snapshots }: Workspace,
  { path, left, back, mode }: Replacement,
): Promise<FileOutcome> {
  const done = back === null ? "removed" : left === null ? "made" : "changed";
  try {
    if (back === null) await files.remove(path, left ?? "");
    else {
      const bytes = await snapshots.load(back);
      if (bytes === undefined) return { kept: "its earlier content is no longer stored" };
      await files.write(path, bytes, left, mode);
    }
    return done;
  } catch (error) {
    if (!(error instanceof StaleFile)) throw error;
    const found = await contentOf(files, path);
    return found === back ? done : { kept: staleReason(found, left) };
  }
}

async function contentOf(files: Workspace["files"], path: string): Promise<string | null> {
  try {
    return (await files.read(path)).hash;
  } catch (error) {
    if (codeOf(error) === "ENOENT") return null;
    throw error;
  }
}

function staleReason(found: string | null, left: string | null): string {
  if (found === null) return "it has been deleted since";
  return left === null ? "another file has been created there since" : "it has changed since";
}
