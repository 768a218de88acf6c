import { constants } from "node:fs";
import { access } from "node:fs/promises";
import { posix, win32 } from "node:path";

export type Environment = Readonly<Record<string, string | undefined>>;

/** Endings of what Windows runs as a command. npm installs programs as `.cmd`. */
const commandEndings: readonly string[] = [".exe", ".com", ".cmd", ".bat"];

/** Finds a program in the absolute folders of the PATH. Relative ones would depend on the working directory. */
export function findProgram(name: string, env: Environment): Promise<string | undefined> {
  return findFirst(listProgramPaths(name, env, process.platform, [".exe"]));
}

/** Finds a program or, on Windows, a script that `cmd` runs, which cannot be started directly. */
export function findCommand(name: string, env: Environment): Promise<string | undefined> {
  return findFirst(listProgramPaths(name, env, process.platform));
}

/** Lists the paths at which a program may be, in the order of the PATH. */
export function listProgramPaths(
  name: string,
  env: Environment,
  platform: NodeJS.Platform,
  endings: readonly string[] = commandEndings,
): string[] {
  const paths = platform === "win32" ? win32 : posix;
  const folders = (env["PATH"] ?? env["Path"] ?? "/usr/bin:/bin")
    .split(paths.delimiter)
    .filter((folder) => paths.isAbsolute(folder));
  return folders.flatMap((folder) => listSpellings(paths.join(folder, name), platform, endings));
}

/** Finds the program at a path, on Windows also as a script. */
export function findCommandAt(path: string): Promise<string | undefined> {
  return findFirst(listSpellings(path, process.platform));
}

function listSpellings(
  path: string,
  platform: NodeJS.Platform,
  endings: readonly string[] = commandEndings,
): string[] {
  if (platform !== "win32" || commandEndings.some((ending) => path.toLowerCase().endsWith(ending)))
    return [path];
  return endings.map((ending) => path + ending);
}

async function findFirst(paths: readonly string[]): Promise<string | undefined> {
  for (const path of paths) if (await isExecutable(path)) return path;
  return undefined;
}

export async function isExecutable(path: string): Promise<boolean> {
  try {
    await access(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
