import { type Stats, statSync } from "node:fs";

/**
 * Returns the stat of a path, following links; undefined when nothing is there. Throws system errors such as EACCES.
 * Synchronous on purpose: about ninety paths are checked before each prompt, at a few microseconds each. Going
 * through the thread pool took longer than all other work.
 */
export function statOrUndefined(path: string): Stats | undefined {
  return statSync(path, { throwIfNoEntry: false });
}

/** True for a folder; false when nothing is there or access is denied. */
export function isFolder(path: string): boolean {
  try {
    return statOrUndefined(path)?.isDirectory() === true;
  } catch {
    return false;
  }
}
