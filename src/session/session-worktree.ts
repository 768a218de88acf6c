import { realpath } from "node:fs/promises";
import { UserError } from "../base/errors.ts";
import { isBelow } from "../base/files/paths.ts";
import { makeFolder } from "../base/files/make-folder.ts";
import type { Folders } from "../conversation/project.ts";
import type { SessionInfo, Worktree } from "../message/message.ts";
import { toWorktreePath } from "../workspace/worktrees/worktree-path.ts";

/** Returns the folders in which the session's tools work. */
export function toProjectFolders({
  cwd,
  additionalDirectories = [],
  worktree,
}: Pick<SessionInfo, "cwd" | "additionalDirectories" | "worktree">): Folders {
  if (worktree === undefined) return { cwd, additionalDirectories };
  return {
    cwd: toWorktreePath(worktree, cwd),
    additionalDirectories: additionalDirectories.map((path) => toWorktreePath(worktree, path)),
    origin: worktree.main,
  };
}

/** Creates the session's folder in the worktree if git did not, because it has no tracked files. */
export async function makeProjectFolder(worktree: Worktree, cwd: string): Promise<void> {
  await makeFolder(toWorktreePath(worktree, cwd));
}

/** Throws {@link UserError} if the folder is not in the checkout from which the worktree was made. */
export async function requireInCheckout({ main }: Worktree, cwd: string): Promise<void> {
  const folder = await realpath(cwd);
  if (folder === main || isBelow(folder, main)) return;
  throw new UserError(`This session works in a worktree of ${main}. Open it in that folder.`);
}

/** Tells the user where a session with a worktree works. */
export function describeWorktree({ root, branch, main, untracked }: Worktree): string {
  const files =
    untracked === 1 ? "1 untracked file or folder" : `${untracked ?? 0} untracked files or folders`;
  const missing = untracked === undefined ? "" : ` Not copied from the checkout: ${files}.`;
  return `This session works in the worktree ${root} on the branch ${branch}, apart from ${main}: files in its cards are there.${missing} /merge merges its changes into ${main} after you confirm, /merge drop discards them.`;
}
