import { join, relative } from "node:path";
import { isBelow } from "../../base/files/paths.ts";
import type { Worktree } from "../../message/message.ts";
import type { Workspace } from "../workspace.ts";

/** Characters of a session's id at the end of the names of its worktree and branch. */
export const worktreeNameLength = 8;

/** Returns the folder of the worktree for a folder of the main checkout; other folders are unchanged. */
export function toWorktreePath({ root, main }: Worktree, path: string): string {
  return path === main || isBelow(path, main) ? join(root, relative(main, path)) : path;
}

/** Lets undo and redo reach the files that merges change: those of the checkout, and of the whole repository. */
export function addMergedFolders(workspace: Workspace, { worktree }: { worktree?: Worktree }): Workspace {
  const folders = [worktree?.main, workspace.worktree].filter((folder) => folder !== undefined);
  return { ...workspace, roots: [...workspace.roots, ...folders] };
}
