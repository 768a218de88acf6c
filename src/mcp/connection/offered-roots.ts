import { stat } from "node:fs/promises";
import { homedir } from "node:os";
import { isAbsolute, resolve } from "node:path";
import type { LocalServer, ServerSettings } from "../server-settings.ts";

/**
 * Whether a server is offered the session's folders (roots). A server that gets folders on its command line is not: it
 * would use the session's in their place. The setting `roots` says otherwise.
 */
export async function offersRoots(settings: ServerSettings, cwd: string): Promise<boolean> {
  if (settings.roots !== undefined) return settings.roots;
  if (settings.type === "remote") return true;
  const named = await Promise.all(folderCandidates(settings).map((path) => mayBeFolder(path, cwd)));
  return !named.includes(true);
}

/** Arguments, and the values in `--option=value`. */
function folderCandidates({ args }: LocalServer): string[] {
  return args.flatMap((arg) => (arg.startsWith("-") ? (/=(.+)$/s.exec(arg)?.[1] ?? []) : arg));
}

/** An absolute path counts where nothing is there too: the server may make the folder. */
async function mayBeFolder(text: string, cwd: string): Promise<boolean> {
  const path = text.replace(/^~(?=$|[/\\])/, () => homedir());
  try {
    return (await stat(resolve(cwd, path))).isDirectory();
  } catch {
    // Whatever keeps it from being looked at, the server may mean it.
    return isAbsolute(path);
  }
}
