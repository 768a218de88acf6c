import { linkSync, lstatSync, renameSync, rmSync } from "node:fs";
import { codeOf } from "../../base/errors.ts";

/**
 * Swaps a new file with the one at `place` in the same folder. Afterwards `incoming` contains the replaced file.
 * - Returns false if the file system cannot keep the replaced file.
 * - Throws system errors such as ENOENT if nothing is at the place.
 */
export type Exchange = (target: string, incoming: string) => boolean;

/** Suffix of the link that preserves the replaced file. */
export const linkSuffix = ".old";

/** Returns the best implementation for this system. */
export async function loadExchange(): Promise<Exchange> {
  const swap = process.platform === "win32" ? undefined : await loadSwap();
  if (swap === undefined) return exchangeByLink;
  return (target, incoming) => {
    try {
      // In this order the last file event at the place is a creation, which watchers expect.
      swap(target, incoming);
      return true;
    } catch (error) {
      if (isMissingOrDenied(error)) throw error;
      return exchangeByLink(target, incoming);
    }
  };
}

/**
 * Fallback without a system call: a second link preserves the replaced file. Only a save by renaming between
 * two system calls is lost.
 */
export function exchangeByLink(target: string, incoming: string): boolean {
  const saved = `${incoming}${linkSuffix}`;
  if (!tryLink(target, saved)) {
    // Throws if the file is gone by now.
    lstatSync(target);
    renameSync(incoming, target);
    return false;
  }
  try {
    renameSync(incoming, target);
  } catch (error) {
    rmSync(saved, { force: true });
    throw error;
  }
  renameSync(saved, incoming);
  return true;
}

/** Links a file to a free path. False if the file system has no links; throws EEXIST if the path is taken. */
export function tryLink(from: string, to: string): boolean {
  try {
    linkSync(from, to);
    return true;
  } catch (error) {
    if (isMissingOrDenied(error) || codeOf(error) === "EEXIST") throw error;
    return false;
  }
}

/** Errors that the other implementation would meet too. */
function isMissingOrDenied(error: unknown): boolean {
  const code = codeOf(error);
  return code === "ENOENT" || code === "EACCES" || code === "EROFS" || code === "ENOSPC" || code === "EDQUOT";
}

type Swap = (from: string, to: string) => void;

async function loadSwap(): Promise<Swap | undefined> {
  try {
    return (await import("fs-native-extensions")).swapSync;
  } catch {
    // Not built for this system.
    return undefined;
  }
}
