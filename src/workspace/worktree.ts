import { stat } from "node:fs/promises";
import { dirname, join } from "node:path";

/**
 * The root of the git worktree that holds `cwd`: the nearest folder with a `.git` in it, which is a folder in a
 * main worktree and a file in a linked one or a submodule. Undefined outside git. Runs no program.
 */
export async function findWorktree(cwd: string): Promise<string | undefined> {
  for (let folder = cwd; ; folder = dirname(folder)) {
    if (await exists(join(folder, ".git"))) return folder;
    if (folder === dirname(folder)) return undefined;
  }
}

async function exists(path: string): Promise<boolean> {
  try {
    const found = await stat(path);
    return found.isDirectory() || found.isFile();
  } catch {
    return false;
  }
}
