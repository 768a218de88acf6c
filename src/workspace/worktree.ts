import { dirname, join } from "node:path";
import { statOrUndefined } from "../base/files/file-stat.ts";

/**
 * Finds the root of the git worktree that contains `cwd`: the nearest folder with a `.git` folder (main
 * worktree) or file (linked worktree, submodule). Undefined outside git. Runs no program.
 */
export async function findWorktree(cwd: string): Promise<string | undefined> {
  for (let folder = cwd; ; folder = dirname(folder)) {
    if (exists(join(folder, ".git"))) return folder;
    if (folder === dirname(folder)) return undefined;
  }
}

function exists(path: string): boolean {
  try {
    const found = statOrUndefined(path);
    return found !== undefined && (found.isDirectory() || found.isFile());
  } catch {
    return false;
  }
}
