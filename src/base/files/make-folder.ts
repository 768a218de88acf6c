import { mkdirSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { dirname } from "node:path";
import { codeOf } from "../errors.ts";
import { isFolder } from "./file-stat.ts";

/**
 * Creates a folder and its parents with this mode; an existing folder is not changed. Rejects with the system error.
 * Node's `recursive` option loops forever where an existing folder reports ENOENT, as /proc does.
 */
export async function makeFolder(path: string, mode?: number): Promise<void> {
  try {
    await mkdirAgain(path, mode);
  } catch (error) {
    if (!isFolder(path)) throw error;
  }
}

async function mkdirAgain(path: string, mode: number | undefined): Promise<void> {
  try {
    await mkdir(path, { mode });
  } catch (error) {
    if (codeOf(error) !== "ENOENT" || dirname(path) === path) throw error;
    await makeFolder(dirname(path), mode);
    await mkdir(path, { mode });
  }
}

/** Synchronous {@link makeFolder}. */
export function makeFolderSync(path: string, mode?: number): void {
  if (isFolder(path)) return;
  if (dirname(path) !== path) makeFolderSync(dirname(path), mode);
  try {
    mkdirSync(path, { mode });
  } catch (error) {
    // Another process may have created it in the meantime.
    if (!isFolder(path)) throw error;
  }
}
