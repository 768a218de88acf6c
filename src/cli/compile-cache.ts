import { readdirSync } from "node:fs";
import { enableCompileCache, flushCompileCache } from "node:module";
import { join } from "node:path";
import { isFolder } from "../base/files/file-stat.ts";
import { makeFolderSync } from "../base/files/make-folder.ts";

/** When the compiled code of what was loaded so far is written: a client may kill us without warning. */
const flushDelayMs = 250;

/** Caches compiled code in a folder. Where that is not possible the program only starts slower, which `fairlead doctor` tells. */
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
 * Returns an entry that Node would open although it is no regular file: reading a pipe never ends. Undefined when
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
    const odd = readdirSync(path, { withFileTypes: true }).find((file) => !file.isFile());
    if (odd !== undefined) return join(path, odd.name);
  }
  return undefined;
}
