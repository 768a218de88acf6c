import { type Stats, statSync } from "node:fs";

/**
 * What stands at a path, links followed; undefined where there is nothing. Throws system errors such as EACCES.
 * Synchronous on purpose: before each prompt some ninety places are looked at, at a few microseconds each; by way of
 * the thread pool that took longer than all else.
 */
export function statOrUndefined(path: string): Stats | undefined {
  return statSync(path, { throwIfNoEntry: false });
}

/** Whether a folder stands there; not where nobody may look. */
export function isFolder(path: string): boolean {
  try {
    return statOrUndefined(path)?.isDirectory() === true;
  } catch {
    return false;
  }
}
