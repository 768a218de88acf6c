import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { IgnoreRules } from "../search/ignore-rules.ts";

/** Lists files and links below a folder that no rule ignores; undefined if there are more than the limit. */
export async function listFolderFiles(folder: string, limit: number): Promise<string[] | undefined> {
  const paths: string[] = [];
  const isComplete = await walk(folder, await IgnoreRules.above(folder), paths, limit);
  return isComplete ? paths : undefined;
}

async function walk(folder: string, above: IgnoreRules, paths: string[], limit: number): Promise<boolean> {
  const entries = await readEntries(folder);
  const rules = await above.enter(folder, new Set(entries.map(({ name }) => name)));
  for (const entry of entries) {
    const isFolder = entry.isDirectory();
    if (entry.name === ".git" || rules.excludes(entry.name, isFolder)) continue;
    const path = join(folder, entry.name);
    if (isFolder) {
      if (!(await walk(path, rules, paths, limit))) return false;
    } else if (entry.isFile() || entry.isSymbolicLink()) paths.push(path);
    if (paths.length > limit) return false;
  }
  return true;
}

async function readEntries(folder: string) {
  try {
    return await readdir(folder, { withFileTypes: true });
  } catch {
    // A folder that cannot be read cannot be restored either.
    return [];
  }
}
