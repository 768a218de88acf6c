import type { Dirent } from "node:fs";
import { readdir, stat } from "node:fs/promises";
import { isAbsolute, join, parse, relative, resolve } from "node:path";
import { toSlashes } from "../base/files/paths.ts";
import { Minimatch } from "minimatch";
import { codeOf, messageOf } from "../base/errors.ts";

/** Maximum number of folder entries that one glob visits. */
const ENTRIES_LIMIT = 20_000;

/** Folders that `**` does not enter. */
const SKIPPED_FOLDERS: readonly string[] = ["node_modules", ".git"];

const MATCH_OPTIONS = { dot: true, nocomment: true, nonegate: true } as const;

export interface FoundFiles {
  /** Absolute, sorted within each folder. */
  paths: string[];
  /** Why files are missing from the result. */
  notes: string[];
}

/** Finds the files of a path or glob. A relative one is resolved against each folder. */
export async function findFiles(
  entry: string,
  context: { home: string; folders: readonly string[] },
): Promise<FoundFiles> {
  const pattern = entry.startsWith("~/") ? join(context.home, entry.slice(2)) : entry;
  const { root } = parse(pattern);
  const folders = isAbsolute(pattern) ? [root] : context.folders;
  const found: FoundFiles = { paths: [], notes: [] };
  for (const folder of folders) await findFrom(folder, pattern.slice(root.length), found);
  if (found.paths.length === 0)
    found.notes.push(`${entry} is configured as instructions, but no file matches`);
  return found;
}

async function findFrom(folder: string, pattern: string, found: FoundFiles): Promise<void> {
  const { base, rest } = splitPattern(resolve(folder), pattern);
  if (rest.length === 0) {
    if (await isFile(base, found)) found.paths.push(base);
    return;
  }
  const matcher = new Minimatch(rest.join("/"), MATCH_OPTIONS);
  const depth = rest.includes("**") ? Infinity : rest.length;
  const files = await listFiles(base, depth, found);
  found.paths.push(...files.filter((file) => matcher.match(toSlashes(relative(base, file)))).sort());
}

/** Splits a pattern into the literal leading folders and the rest from the first wildcard on. */
function splitPattern(folder: string, pattern: string): { base: string; rest: string[] } {
  const segments = toSlashes(pattern)
    .split("/")
    .filter((segment) => segment !== "" && segment !== ".");
  const firstWild = segments.findIndex((segment) => new Minimatch(segment, MATCH_OPTIONS).hasMagic());
  const fixed = firstWild === -1 ? segments : segments.slice(0, firstWild);
  return { base: resolve(folder, ...fixed), rest: firstWild === -1 ? [] : segments.slice(firstWild) };
}

async function listFiles(base: string, depth: number, found: FoundFiles): Promise<string[]> {
  const files: string[] = [];
  let folders = [base];
  let looked = 0;
  for (let level = 0; level < depth && folders.length > 0; level++) {
    const next: string[] = [];
    for (const folder of folders) {
      for (const entry of await listFolder(folder, found)) {
        if (++looked > ENTRIES_LIMIT) {
          found.notes.push(
            `${base} contains more than ${ENTRIES_LIMIT} entries; instructions in the rest are ignored`,
          );
          return files;
        }
        const path = join(folder, entry.name);
        if (entry.isDirectory() && !SKIPPED_FOLDERS.includes(entry.name)) next.push(path);
        if (entry.isFile() || entry.isSymbolicLink()) files.push(path);
      }
    }
    folders = next;
  }
  return files;
}

async function listFolder(folder: string, found: FoundFiles): Promise<Dirent[]> {
  try {
    return await readdir(folder, { withFileTypes: true });
  } catch (thrown) {
    if (codeOf(thrown) !== "ENOENT") found.notes.push(`${folder} cannot be listed: ${messageOf(thrown)}`);
    return [];
  }
}

async function isFile(path: string, found: FoundFiles): Promise<boolean> {
  try {
    return (await stat(path)).isFile();
  } catch (thrown) {
    const code = codeOf(thrown);
    if (code !== "ENOENT" && code !== "ENOTDIR")
      found.notes.push(`${path} cannot be read: ${messageOf(thrown)}`);
    return false;
  }
}
