import { linkSync, lstatSync, renameSync, rmSync } from "node:fs";
import { codeOf } from "../../base/errors.ts";

/**
 * Swaps a file with the one at a place in the same folder. Afterwards the second path has what was at the place.
 * - `false`: the file system can keep nothing of it; the file only replaced it.
 * - Throws system errors such as ENOENT where nothing is at the place.
 */
export type Exchange = (place: string, fresh: string) => boolean;

/** Added to a temporary file's name for the link that holds what is replaced. */
export const linkSuffix = ".old";

/** The best way that this machine has. */
export async function loadExchange(): Promise<Exchange> {
  const swap = process.platform === "win32" ? undefined : await loadSwap();
  if (swap === undefined) return exchangeByLink;
  return (place, fresh) => {
    try {
      // In this order the place's last event says that a file has come, which is what watchers go by.
      swap(place, fresh);
      return true;
    } catch (error) {
      if (isMissingOrDenied(error)) throw error;
      return exchangeByLink(place, fresh);
    }
  };
}

/**
 * Without a system call for it: a second link holds what is replaced. Only a save by renaming that comes between two
 * calls of the system is lost.
 */
export function exchangeByLink(place: string, fresh: string): boolean {
  const held = `${fresh}${linkSuffix}`;
  if (!tryLink(place, held)) {
    // Where the place is empty by now, this says so.
    lstatSync(place);
    renameSync(fresh, place);
    return false;
  }
  try {
    renameSync(fresh, place);
  } catch (error) {
    rmSync(held, { force: true });
    throw error;
  }
  renameSync(held, fresh);
  return true;
}

/** Puts a file where nothing is. False where the file system has no links; throws EEXIST where something is. */
export function tryLink(from: string, to: string): boolean {
  try {
    linkSync(from, to);
    return true;
  } catch (error) {
    if (isMissingOrDenied(error) || codeOf(error) === "EEXIST") throw error;
    return false;
  }
}

/** Errors that another way would meet too. */
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
