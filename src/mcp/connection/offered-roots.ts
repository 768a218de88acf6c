import { stat } from "node:fs/promises";
import { isAbsolute, resolve } from "node:path";
import { homeFolder } from "../../config/paths.ts";
import type { LocalServer, ServerSettings } from "../server-settings.ts";

/**
 * Returns whether a server receives the session's folders (roots). By default not if its command line has folders, which
 * the roots would replace. The setting `roots` overrides this.
 */
export async function shouldOfferRoots(settings: ServerSettings, cwd: string): Promise<boolean> {
  if (settings.roots !== undefined) return settings.roots;
  if (settings.type === "remote") return true;
  const named = await Promise.all(folderCandidates(settings).map((path) => mayBeFolder(path, cwd)));
  return !named.includes(true);
}

/** Returns the arguments and the values of `--option=value`. */
function folderCandidates({ args }: LocalServer): string[] {
  return args.flatMap((arg) => (arg.startsWith("-") ? (/=(.+)$/s.exec(arg)?.[1] ?? []) : arg));
}

/** Returns whether the argument is a folder. Absolute paths count even if missing: the server may create them. */
async function mayBeFolder(text: string, cwd: string): Promise<boolean> {
  const path = text.replace(/^~(?=$|[/\\])/, () => homeFolder(process));
  try {
    return (await stat(resolve(cwd, path))).isDirectory();
  } catch {
    // Not readable, but the server may still mean it.
    return isAbsolute(path);
  }
}
