import { isAbsolute, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

/** Folders of a configuration folder whose files are loaded as code. */
export const pluginFolderNames: readonly string[] = ["plugin", "plugins"];
export const toolFolderNames: readonly string[] = ["tool", "tools"];

/** Whether a file in such a folder is loaded: declarations of types have nothing to run. */
export function isModuleFile(name: string): boolean {
  return /\.(?:[cm]?js|[cm]?ts)$/.test(name) && !/\.d\.[cm]?ts$/.test(name);
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
