import { isAbsolute, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { isRecord } from "../../base/text/record.ts";

/** Folders of a configuration folder whose files are loaded as code. */
export const pluginFolderNames: readonly string[] = ["plugin", "plugins"];
export const toolFolderNames: readonly string[] = ["tool", "tools"];

/** Whether a file in such a folder is loaded: declarations of types have nothing to run. */
export function isModuleFile(name: string): boolean {
  return /\.(?:[cm]?js|[cm]?ts)$/.test(name) && !/\.d\.[cm]?ts$/.test(name);
}

/** A module as the key `plugin` names it. */
export interface PluginEntry {
  /** A path, or a package with or without its version. */
  readonly name: string;
  readonly options?: Readonly<Record<string, unknown>>;
}

/** An entry of the key `plugin`, a name or `[name, options]`; undefined where it is neither. */
export function pluginEntry(entry: unknown): PluginEntry | undefined {
  if (typeof entry === "string") return { name: entry };
  if (!Array.isArray(entry)) return undefined;
  const [name, options = {}]: unknown[] = entry;
  return typeof name === "string" && isRecord(options) && entry.length <= 2 ? { name, options } : undefined;
}

/** The file that an entry of the key `plugin` names; undefined where it names a package. */
export function pluginPath(entry: string, source: string, home: string): string | undefined {
  if (entry.startsWith("file://")) return URL.canParse(entry) ? fileURLToPath(entry) : entry;
  if (entry.startsWith("~/")) return join(home, entry.slice(2));
  return entry.startsWith(".") || isAbsolute(entry) ? resolve(source, "..", entry) : undefined;
}

/** The name in an entry that names a package, without its version. Undefined where it is no name. */
export function packageName(entry: string): string | undefined {
  const name = /^(?:@[\w.-]+\/)?[\w.-]+(?=@|$)/.exec(entry)?.[0];
  return name === undefined || name.split("/").some((part) => /^@?\.*$/.test(part)) ? undefined : name;
}
