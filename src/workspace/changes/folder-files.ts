import { readdir } from "node:fs/promises";
import { join, relative } from "node:path";
import { toSlashes } from "../../base/files/paths.ts";
import { toPathFilter } from "../search/glob.ts";
import { IgnoreRules } from "../search/ignore-rules.ts";
import type { NamedPath } from "./command-changes.ts";

/**
 * Lists files and links below a folder that no rule ignores, without the folders in `omitted`. Undefined if there are
 * more than the limit.
 */
export async function listFolderFiles(
  folder: string,
  { omitted, limit }: { readonly omitted: ReadonlySet<string>; readonly limit: number },
): Promise<string[] | undefined> {
  const found: Found = { paths: [], omitted, limit };
  return (await walk(folder, await IgnoreRules.above(folder), found)) ? found.paths : undefined;
}

/**
 * Lists files and links that the paths name, ignored or not, without files and folders in `omitted`. Undefined if there are more
 * than the limit.
 */
export async function listNamedFiles(
  root: string,
  named: readonly NamedPath[],
  { omitted, limit }: { readonly omitted: ReadonlySet<string>; readonly limit: number },
): Promise<string[] | undefined> {
  const paths = new Set<string>();
  for (const one of named) {
    const found: Found = { paths: [], omitted, limit };
    const folder = one.isGlob ? findGlobFolder(one.path) : one.path;
    if (!(await walk(folder, undefined, found))) return undefined;
    const isNamed = createFilter(root, one);
    for (const path of found.paths) if (isNamed(toSlashes(relative(root, path)))) paths.add(path);
  }
  return paths.size > limit ? undefined : [...paths];
}

function createFilter(root: string, { path, isGlob, isBelow }: NamedPath): (path: string) => boolean {
  if (!isGlob) return () => true;
  const pattern = `/${toSlashes(relative(root, path))}`;
  return toPathFilter([pattern, ...(isBelow ? [`${pattern}/**`] : [])], root);
}

/** Returns the folder in which the names that a pattern matches begin. */
function findGlobFolder(pattern: string): string {
  return pattern.slice(0, pattern.search(/[*?[]/)).replace(/\/[^/]*$/, "");
}

interface Found {
  readonly paths: string[];
  readonly omitted: ReadonlySet<string>;
  readonly limit: number;
}

/** Adds the files below a folder, except those that `above` ignores. Returns false above the limit. */
async function walk(folder: string, above: IgnoreRules | undefined, found: Found): Promise<boolean> {
  const entries = await readEntries(folder);
  const rules = await above?.enter(folder, new Set(entries.map(({ name }) => name)));
  for (const entry of entries) {
    const isFolder = entry.isDirectory();
    if (entry.name === ".git" || rules?.excludes(entry.name, isFolder)) continue;
    const path = join(folder, entry.name);
    if (found.omitted.has(path)) continue;
    if (isFolder) {
      if (!(await walk(path, rules, found))) return false;
    } else if (entry.isFile() || entry.isSymbolicLink()) found.paths.push(path);
    if (found.paths.length > found.limit) return false;
  }
  return true;
}

/** Empty if the folder cannot be read. */
export async function readEntries(folder: string) {
  try {
    return await readdir(folder, { withFileTypes: true });
  } catch {
    // A folder that cannot be read cannot be restored either.
    return [];
  }
}
