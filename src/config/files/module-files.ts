import { isAbsolute, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { isRecord } from "../../base/text/record.ts";

/** Folder names inside a configuration folder whose files are loaded as code. */
export const pluginFolderNames: readonly string[] = ["plugin", "plugins"];
export const toolFolderNames: readonly string[] = ["tool", "tools"];

/** Whether a file is loaded as code. Type declarations are not. */
export function isModuleFile(name: string): boolean {
  return /\.(?:[cm]?js|[cm]?ts)$/.test(name) && !/\.d\.[cm]?ts$/.test(name);
}

/** An entry of the key `plugin`. */
export interface PluginEntry {
  /** A path, or a package name with or without a version. */
  readonly name: string;
  readonly options?: Readonly<Record<string, unknown>>;
}

/** Parses an entry of the key `plugin`: a name or `[name, options]`. Undefined if it is neither. */
export function parsePluginEntry(entry: unknown): PluginEntry | undefined {
  if (typeof entry === "string") return { name: entry };
  if (!Array.isArray(entry)) return undefined;
  const [name, options = {}]: unknown[] = entry;
  return typeof name === "string" && isRecord(options) && entry.length <= 2 ? { name, options } : undefined;
}

/** Resolves a `plugin` entry to a file path; undefined if it names a package. */
export function resolvePluginPath(entry: string, source: string, home: string): string | undefined {
  if (entry.startsWith("file://")) return URL.canParse(entry) ? fileURLToPath(entry) : entry;
  if (entry.startsWith("~/")) return join(home, entry.slice(2));
  return entry.startsWith(".") || isAbsolute(entry) ? resolve(source, "..", entry) : undefined;
}

/** Package name of an entry without its version; undefined if it is not a valid name. */
export function parsePackageName(entry: string): string | undefined {
  const name = /^(?:@[\w.-]+\/)?[\w.-]+(?=@|$)/.exec(entry)?.[0];
  return name === undefined || name.split("/").some((part) => /^@?\.*$/.test(part)) ? undefined : name;
}
