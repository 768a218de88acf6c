import { mkdirSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { dirname } from "node:path";
import { codeOf } from "../errors.ts";
import { isFolder } from "./file-stat.ts";

/**
 * Makes a folder and those above it, with these rights; one that is there stays as it is. Rejects with the system's
 * error. Node's own `recursive` never ends where a folder that exists says that there is none, as /proc does
 * (libuv's ENOENT is answered by making the parent, which is there, for ever).
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

/** {@link makeFolder} for where nothing can be waited for. */
export function makeFolderNow(path: string, mode?: number): void {
  if (isFolder(path)) return;
  if (dirname(path) !== path) makeFolderNow(dirname(path), mode);
  try {
    mkdirSync(path, { mode });
  } catch (error) {
    // Another process may have made it in between.
    if (!isFolder(path)) throw error;
  }
}
