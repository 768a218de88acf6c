import { dirname, join } from "node:path";
import { statOrUndefined } from "../base/files/file-stat.ts";

/**
 * The root of the git worktree that holds `cwd`: the nearest folder with a `.git` in it, which is a folder in a
 * main worktree and a file in a linked one or a submodule. Undefined outside git. Runs no program.
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
