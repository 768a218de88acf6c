import { readdirSync } from "node:fs";
import { enableCompileCache, flushCompileCache } from "node:module";
import { join } from "node:path";
import { isFolder } from "../base/files/file-stat.ts";
import { makeFolderSync } from "../base/files/make-folder.ts";

/** Delay before the cache is written for the first time: a client may kill the process without warning. */
const flushDelayMs = 250;

/** Caches compiled code in a folder. On failure the program only starts slower; `fairlead doctor` reports it. */
export function cacheCompiledCode(folder: string): void {
  try {
    makeFolderSync(folder, 0o700);
    if (unreadableEntry(folder) !== undefined) return;
  } catch {
    return;
  }
  enableCompileCache(folder);
  setTimeout(flushCompileCache, flushDelayMs).unref();
}

/**
 * Returns a cache entry that is not a regular file: Node would open it, and reading a pipe never ends. Undefined when
 * there is none, or no folder.
 */
export function unreadableEntry(folder: string): string | undefined {
  if (!isFolder(folder)) return undefined;
  // Node has a folder for each of its versions.
  const versions = readdirSync(folder, { withFileTypes: true }).filter(({ name }) =>
    name.startsWith(process.version),
  );
  for (const entry of versions) {
    const path = join(folder, entry.name);
    if (!entry.isDirectory()) return path;
    const special = readdirSync(path, { withFileTypes: true }).find((file) => !file.isFile());
    if (special !== undefined) return join(path, special.name);
  }
  return undefined;
}
