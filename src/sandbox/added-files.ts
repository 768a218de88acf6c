import { existsSync, mkdirSync, renameSync } from "node:fs";
import { basename, join } from "node:path";
import { messageOf } from "../base/errors.ts";
import { blockedEnding, redirections } from "./redirection-guard.ts";
import type { ProtectedFiles } from "./protected-files.ts";

/** Names in one note. */
const namedFiles = 5;

/**
 * Creates missing hook folders of repositories, so that they can be protected. Returns all protected files.
 */
export function addHookFolders(found: ProtectedFiles): ProtectedFiles {
  const missing = found.pinned
    .filter((folder) => existsSync(join(folder, "HEAD")))
    .map((folder) => join(folder, "hooks"))
    .filter((hooks) => !existsSync(hooks));
  for (const hooks of missing) mkdirSync(hooks);
  return { ...found, readOnly: [...found.readOnly, ...missing] };
}

/**
 * Finds files that change what the agent or git runs, and that appeared while a command ran: a mount cannot protect what
 * does not exist. Renames those that redirect the git of a repository that existed, unless that was done when they
 * appeared (`guarded`). Returns a note for the model and the user; undefined if there are none.
 */
export function describeAddedFiles(
  before: ProtectedFiles,
  after: ProtectedFiles,
  guarded: ReadonlySet<string>,
): string | undefined {
  const known = new Set(before.readOnly);
  const left = before.pinned.flatMap((folder) =>
    redirections.map((name) => join(folder, name)).filter((path) => !known.has(path) && existsSync(path)),
  );
  const problems = left.flatMap(rename);
  const renamed = [...new Set([...guarded, ...left])];
  const repositories = new Set(before.pinned);
  const isNewRepository = (path: string) =>
    after.pinned.some((folder) => !repositories.has(folder) && path.startsWith(folder));
  const added = after.readOnly.filter(
    (path) => !known.has(path) && !renamed.includes(path) && !isNewRepository(path),
  );
  const notes = [
    ...(renamed.length === 0
      ? []
      : [`${list(renamed)} would redirect git: renamed to end in ${blockedEnding}`]),
    ...problems,
    ...(added.length === 0
      ? []
      : [`${list(added)} appeared and may change what the agent or git runs: look at it before you use it`]),
  ];
  return notes.length === 0 ? undefined : `[From the sandbox: ${notes.join(". ")}.]`;
}

function rename(path: string): string[] {
  try {
    renameSync(path, `${path}${blockedEnding}`);
    return [];
  } catch (error) {
    return [`${basename(path)} could not be renamed: ${messageOf(error)}`];
  }
}

function list(paths: readonly string[]): string {
  const more = paths.length - namedFiles;
  return paths.slice(0, namedFiles).join(", ") + (more > 0 ? ` and ${more} more` : "");
}
