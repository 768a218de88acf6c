import type { Dirent } from "node:fs";
import { readdir, readFile } from "node:fs/promises";
import { join, relative, sep } from "node:path";
import { statOrUndefined } from "../base/files/file-stat.ts";
import { isInside } from "../workspace/paths.ts";
import { type KnownFormatter, knownFormatters } from "./known-formatters.ts";

/** A configuration file that is larger is not searched. */
const markerLimitBytes = 1024 * 1024;
/** Folders below a project's root that are searched, nearest first. */
const folderLimit = 2_000;
const depthLimit = 5;
/** Folders with code of other projects, or with generated files. */
const foreignFolders = new Set(["node_modules", "vendor", "target", "dist", "build", "out", "__pycache__"]);

/** Returns the folders of a project in which each known formatter is configured, those near the root first. */
export async function findConfiguredFolders(
  root: string,
  cwd: string,
): Promise<ReadonlyMap<string, readonly string[]>> {
  const configured = new Map<string, string[]>();
  const note = async (folder: string, names: ReadonlySet<string>) => {
    for (const [name, formatter] of knownFormatters)
      if (await isConfigured(formatter, folder, names))
        configured.set(name, [...(configured.get(name) ?? []), folder]);
  };
  let level = [...new Set([root, cwd])];
  let rest = folderLimit;
  for (let depth = 0; depth <= depthLimit && level.length > 0; depth++) {
    const entries = await Promise.all(level.map(readFolder));
    for (const [at, folder] of level.entries())
      await note(folder, new Set(entries[at]?.map(({ name }) => name)));
    const below = level.flatMap((folder, at) => findSubfolders(folder, entries[at] ?? []));
    level = [...new Set(below)].filter((folder) => folder !== cwd).slice(0, rest);
    rest -= level.length;
  }
  return configured;
}

/** Returns the depth of the nearest of the folders that contains the path; undefined if none does. */
export function findNearestDepth(path: string, root: string, folders: readonly string[]): number | undefined {
  const depths = folders
    .filter((folder) => isInside(path, [folder]))
    .map((folder) => relative(root, folder).split(sep).filter(Boolean).length);
  return depths.length === 0 ? undefined : Math.max(...depths);
}

/** A folder that cannot be read configures nothing. */
async function readFolder(folder: string): Promise<Dirent[]> {
  return readdir(folder, { withFileTypes: true }).catch(() => []);
}

function findSubfolders(folder: string, entries: readonly Dirent[]): string[] {
  return entries
    .filter((entry) => entry.isDirectory() && !entry.name.startsWith(".") && !foreignFolders.has(entry.name))
    .map(({ name }) => join(folder, name))
    .sort();
}

async function isConfigured(
  { markers }: KnownFormatter,
  folder: string,
  names: ReadonlySet<string>,
): Promise<boolean> {
  for (const { file, text } of markers)
    if (names.has(file) && (await hasMarker(join(folder, file), text))) return true;
  return false;
}

/** A file that cannot be read configures nothing. */
async function hasMarker(path: string, text: RegExp | undefined): Promise<boolean> {
  try {
    const found = statOrUndefined(path);
    if (found?.isFile() !== true) return false;
    if (text === undefined) return true;
    return found.size <= markerLimitBytes && text.test(await readFile(path, "utf8"));
  } catch {
    return false;
  }
}
