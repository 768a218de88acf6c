import { lstat, mkdir, readdir, readlink, rmdir, symlink, unlink } from "node:fs/promises";
import { dirname, join } from "node:path";
import { codeOf, isMissing, messageOf } from "../base/errors.ts";
import { sha256 } from "../base/text/hash.ts";
import { StaleFile, withFileAt } from "../workspace/files/files.ts";
import { isInside, resolvePath } from "../workspace/paths.ts";
import type { Workspace } from "../workspace/workspace.ts";
import { type FileMetadata, type FileStep, mergeMetadata } from "../conversation/checkpoints.ts";

/**
 * How far one file can be reverted, and between which contents.
 * - `left`: the content that the agent left; `back`: the content to restore. Both are content hashes; null is "no
 *   such file".
 * - `reach`: "whole" goes back to the start. The others stop where somebody else changed the file between two
 *   changes of the agent, or where a content was too large to store.
 */
export type FileRevert = FileMetadata & { readonly path: string } & (
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
  const reverts = [...byPath].map(([path, own]) => ({ ...planFile(path, own), ...mergeMetadata(own) }));
  return reverts.sort((one, other) => (one.path < other.path ? -1 : 1));
}

/** Removals come first: a file may have taken the place of a folder, or a folder that of a file. */
export function removes(revert: FileRevert): boolean {
  return revert.reach !== "none" && revert.back === null;
}

/** Swaps the contents, to redo a reverted file. */
export function reverse(revert: FileRevert): FileRevert {
  if (revert.reach === "none") return revert;
  const { mode, newMode, wasLink, isLink, left, back, ...rest } = revert;
  return {
    ...rest,
    left: back,
    back: left,
    ...(newMode === undefined ? mode !== undefined && { mode } : { mode: newMode, newMode: mode }),
    ...(isLink && { wasLink: isLink }),
    ...(wasLink && { isLink: wasLink }),
  };
}

/**
 * Replaces `left` by `back` if the disk has exactly `left`. Repeatable: does nothing if the disk has `back`. Returns
 * the reason if the file is left unchanged.
 */
export async function revertFile(workspace: Workspace, replacement: Replacement): Promise<FileOutcome> {
  const { path, left, back, newMode, wasLink, isLink } = replacement;
  if (left === back && newMode === undefined && wasLink === isLink) return "unchanged";
  try {
    if (wasLink || isLink) return await revertLink(workspace, replacement);
    if (left === null) await removeIfEmpty(path);
    const obstacle = await findObstacle(workspace, path);
    if (obstacle !== undefined) return { kept: obstacle };
    return await workspace.files.lock([path], () => replace(workspace, replacement));
  } catch (error) {
    return { kept: messageOf(error) };
  }
}

interface Replacement extends FileMetadata {
  readonly path: string;
  readonly left: string | null;
  readonly back: string | null;
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
export async function findObstacle(workspace: Workspace, path: string): Promise<string | undefined> {
  const now = await resolvePath(path, workspace);
  if (now.path !== path) return `the path now leads to ${now.path}`;
  if (!isInside(path, workspace.roots)) return "it is outside the workspace";
  if (now.kind === "directory") return "it is now a folder";
  return now.kind === "special" ? "it is no longer a regular file" : undefined;
}

/** Removes a folder that took the place of a file, if it holds nothing but empty folders. */
async function removeIfEmpty(path: string): Promise<void> {
  try {
    for (const entry of await readdir(path, { withFileTypes: true })) {
      if (!entry.isDirectory()) return;
      await removeIfEmpty(join(path, entry.name));
    }
    await rmdir(path);
  } catch {
    // Nothing is there, or it is in use: the caller checks the path.
  }
}

async function replace(
  { files, snapshots }: Workspace,
  { path, left, back, mode, newMode }: Replacement,
): Promise<FileOutcome> {
  const done = describeDone(left, back);
  try {
    if (back === null) await files.remove(path, left ?? "");
    else {
      const bytes = await snapshots.load(back);
      if (bytes === undefined) return { kept: "its earlier content is no longer stored" };
      if (left !== back) await files.write(path, bytes, left, mode);
      else if ((await contentOf(files, path)) !== left) throw new StaleFile(path);
      if (left !== null && mode !== undefined && newMode !== undefined)
        await restoreMode(path, newMode, mode);
    }
    return done;
  } catch (error) {
    if (!(error instanceof StaleFile)) throw error;
    const found = await contentOf(files, path);
    return found === back ? done : { kept: staleReason(found, left) };
  }
}

export function describeDone(left: string | null, back: string | null) {
  return back === null ? "removed" : left === null ? "made" : "changed";
}

/** Changes the permission bits if they are as the agent left them. */
async function restoreMode(path: string, left: number, back: number): Promise<void> {
  await withFileAt(path, async (file) => {
    if (((await file.stat()).mode & 0o777) === left) await file.chmod(back);
  });
}

/** As {@link revertFile}, if the content to replace or to restore is the target of a symbolic link. */
async function revertLink(workspace: Workspace, replacement: Replacement): Promise<FileOutcome> {
  const { path, left, back, mode, wasLink, isLink } = replacement;
  const { files, snapshots } = workspace;
  const obstacle = await findLinkObstacle(workspace, path);
  if (obstacle !== undefined) return { kept: obstacle };
  const bytes = back === null ? null : await snapshots.load(back);
  if (bytes === undefined) return { kept: "its earlier content is no longer stored" };
  return files.lock([path], async () => {
    if (left === null) await removeIfEmpty(path);
    const found = await findThing(files, path);
    const isThere = (hash: string | null, link: boolean) =>
      found.hash === hash && (hash === null || found.isLink === link);
    if (isThere(back, wasLink === true)) return describeDone(left, back);
    if (!isThere(left, isLink === true)) return { kept: staleReason(found.hash, left) };
    if (found.isLink) await unlink(path);
    else if (left !== null) await files.remove(path, left);
    if (bytes === null) return "removed";
    if (wasLink) {
      await mkdir(dirname(path), { recursive: true });
      await symlink(bytes, path);
    } else await files.write(path, bytes, null, mode);
    return describeDone(left, back);
  });
}

/** Returns why a link cannot be written: its folder leads elsewhere now, or it is outside the workspace. */
export async function findLinkObstacle(workspace: Workspace, path: string): Promise<string | undefined> {
  const folder = await resolvePath(dirname(path), workspace);
  if (folder.path !== dirname(path)) return `its folder now leads to ${folder.path}`;
  return isInside(path, workspace.roots) ? undefined : "it is outside the workspace";
}

/** Returns the hash of a file's content or of a link's target; null if nothing is there. */
export async function findThing(
  files: Workspace["files"],
  path: string,
): Promise<{ hash: string | null; isLink: boolean }> {
  try {
    if (!(await lstat(path)).isSymbolicLink()) return { hash: await contentOf(files, path), isLink: false };
    return { hash: sha256(await readlink(path, { encoding: "buffer" })), isLink: true };
  } catch (error) {
    if (isMissing(error)) return { hash: null, isLink: false };
    throw error;
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

export function staleReason(found: string | null, left: string | null): string {
  if (found === null) return "it has been deleted since";
  return left === null ? "another file has been created there since" : "it has changed since";
}
