import { readdirSync } from "node:fs";
import { join } from "node:path";
import { codeOf } from "../../base/errors.ts";
import { statOrUndefined } from "../../base/files/file-stat.ts";
import { filesBelow } from "./folder-walk.ts";
import { isModuleFile, pluginFolderNames, toolFolderNames } from "./module-files.ts";

/** Where something may stand that counts, whether it is there now or not. */
export interface WatchedPlaces {
  readonly files: readonly string[];
  /** Configuration folders; of those in them that hold agents, commands and skills all Markdown files count, of those with plugins and tools all code. */
  readonly holders: readonly string[];
  /** All Markdown files below these count. */
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

/** The same as long as no file of the places, or of those none with code in the configuration folders, is made, changed, replaced or removed; reads no contents. */
export async function stampOf(
  { files, holders, folders = [] }: WatchedPlaces,
  what: "all" | "code" = "all",
): Promise<string> {
  const isMarkdown = (name: string) => name.endsWith(".md");
  const held = holders.flatMap(foldersIn);
  const wanted = ({ path, isCode }: HeldFolder) =>
    filesBelow(path, { wanted: isCode ? isModuleFile : isMarkdown });
  const below = await Promise.all([
    ...held.filter(({ isCode }) => isCode || what === "all").map(wanted),
    ...folders.map((folder) => filesBelow(folder, { wanted: isMarkdown })),
  ]);
  const paths = [...files, ...below.flat()];
  return paths.map((path) => `${path}\n${stateOf(path)}\n`).join("");
}

export interface Watched {
  /** Whether something is another one now, is there that was not, or is gone. Reads no contents. */
  hasChanged(): Promise<boolean>;
}

/** Tells later whether something changed that was there, or not there, now. */
export async function watch(places: WatchedPlaces): Promise<Watched> {
  const stamp = await stampOf(places);
  return { hasChanged: async () => (await stampOf(places)) !== stamp };
}

interface HeldFolder {
  readonly path: string;
  readonly isCode: boolean;
}

function foldersIn(holder: string): HeldFolder[] {
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

function stateOf(path: string): string {
  try {
    const found = statOrUndefined(path);
    return found ? [found.mtimeMs, found.ctimeMs, found.size, found.ino].join(" ") : "missing";
  } catch (thrown) {
    const code = codeOf(thrown);
    if (code === undefined) throw thrown;
    return code;
  }
}
