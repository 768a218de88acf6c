import { readFileSync, realpathSync, statSync } from "node:fs";
import { join, resolve } from "node:path";
import { isWithin } from "./profile.ts";

/**
 * Returns the folders outside the workspace that git writes for it: `.git` of a parent folder, and for a
 * linked worktree the repository that it belongs to. A `.git` file is trusted only if that repository names
 * it in return.
 */
export function findGitFolders(worktree: string | undefined, roots: readonly string[]): string[] {
  if (worktree === undefined) return [];
  const path = join(worktree, ".git");
  const folder = isFolder(path) ? path : findCommonFolder(path);
  return folder === undefined || roots.some((root) => isWithin(folder, root)) ? [] : [folder];
}

function findCommonFolder(file: string): string | undefined {
  try {
    const folder = resolve(
      join(file, ".."),
      readFileSync(file, "utf8")
        .replace(/^gitdir:\s*/, "")
        .trim(),
    );
    const back = resolve(folder, readFileSync(join(folder, "gitdir"), "utf8").trim());
    if (realpathSync.native(back) !== realpathSync.native(file)) return undefined;
    return realpathSync.native(resolve(folder, readFileSync(join(folder, "commondir"), "utf8").trim()));
  } catch {
    return undefined;
  }
}

function isFolder(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
}
