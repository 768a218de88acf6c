import { basename, dirname, isAbsolute, join } from "node:path";
import { isInside } from "../workspace/paths.ts";
import { type Environment, findCommand, findCommandAt } from "../workspace/process/find-program.ts";
import type { Workspace } from "../workspace/workspace.ts";
import type { Formatter } from "./choose-formatters.ts";

/** Folders with programs that a project installs. */
const programFolders = [
  join("node_modules", ".bin"),
  join(".venv", "bin"),
  join(".venv", "Scripts"),
  join("vendor", "bin"),
];

/** Finds the program of a formatter for files in a folder: as the project installed it, or on the PATH. */
export async function findFormatterProgram(
  { command, configuredIn }: Formatter,
  folder: string,
  { cwd, worktree = cwd }: Pick<Workspace, "cwd" | "worktree">,
  env: Environment,
): Promise<string | undefined> {
  const [name = ""] = command;
  if (basename(name) !== name) {
    const path = isAbsolute(name) ? name : join(cwd, name);
    return findCommandAt(path);
  }
  const installed = configuredIn === undefined ? undefined : await findInstalled(name, folder, worktree);
  return installed ?? (await findCommand(name, env));
}

/** Looks in the folders from the file's up to the root. */
async function findInstalled(name: string, folder: string, root: string): Promise<string | undefined> {
  for (let at = folder; isInside(at, [root]); at = dirname(at)) {
    for (const place of programFolders) {
      const path = await findCommandAt(join(at, place, name));
      if (path !== undefined) return path;
    }
    if (at === dirname(at)) break;
  }
  return undefined;
}
