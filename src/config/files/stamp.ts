import { readdirSync } from "node:fs";
import { join } from "node:path";
import { codeOf } from "../../base/errors.ts";
import { statOrUndefined } from "../../base/files/file-stat.ts";
import { findFiles } from "./folder-walk.ts";
import { isModuleFile, pluginFolderNames, toolFolderNames } from "./module-files.ts";

/** Paths to watch, whether they exist or not. */
export interface WatchedPaths {
  readonly files: readonly string[];
  /**
   * Configuration folders: Markdown files of agents, commands and skills count, and code of plugins and
   * tools.
   */
  readonly configFolders: readonly string[];
  /** All Markdown files in these folders count. */
  readonly folders?: readonly string[];
}

const markdownFolders: ReadonlySet<string> = new Set([
  "agent",
  "agents",
  "mode",
  "modes",
  "command",
  "commands",
  "skill",
  "skills",
]);

const moduleFolders: ReadonlySet<string> = new Set([...pluginFolderNames, ...toolFolderNames]);

/**
 * Fingerprint of all watched files by size, inode and times; with "code", only of plugins and tools. Reads no
 * contents.
 */
export async function computeStamp(
  { files, configFolders: holders, folders = [] }: WatchedPaths,
  what: "all" | "code" = "all",
): Promise<string> {
  const isMarkdown = (name: string) => name.endsWith(".md");
  const held = holders.flatMap(listContentFolders);
  const wanted = ({ path, isCode }: ContentFolder) =>
    findFiles(path, { wanted: isCode ? isModuleFile : isMarkdown });
  const below = await Promise.all([
    ...held.filter(({ isCode }) => isCode || what === "all").map(wanted),
    ...folders.map((folder) => findFiles(folder, { wanted: isMarkdown })),
  ]);
  const paths = [...files, ...below.flat()];
  return paths.map((path) => `${path}\n${describeState(path)}\n`).join("");
}

export interface ChangeDetector {
  /** Whether a watched file was added, changed, replaced or removed. Reads no contents. */
  hasChanged(): Promise<boolean>;
}

/** Remembers the current state of the paths to detect later changes. */
export async function detectChanges(paths: WatchedPaths): Promise<ChangeDetector> {
  const stamp = await computeStamp(paths);
  return { hasChanged: async () => (await computeStamp(paths)) !== stamp };
}

interface ContentFolder {
  readonly path: string;
  readonly isCode: boolean;
}

function listContentFolders(holder: string): ContentFolder[] {
  try {
    if (statOrUndefined(holder) === undefined) return [];
    return readdirSync(holder)
      .filter((name) => markdownFolders.has(name) || moduleFolders.has(name))
      .map((name) => ({ path: join(holder, name), isCode: moduleFolders.has(name) }));
  } catch (thrown) {
    if (codeOf(thrown) === undefined) throw thrown;
    return [];
  }
}

function describeState(path: string): string {
  try {
    const found = statOrUndefined(path);
    return found ? [found.mtimeMs, found.ctimeMs, found.size, found.ino].join(" ") : "missing";
  } catch (thrown) {
    const code = codeOf(thrown);
    if (code === undefined) throw thrown;
    return code;
  }
}
