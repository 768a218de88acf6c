import { constants } from "node:fs";
import { access } from "node:fs/promises";
import { delimiter, isAbsolute, join } from "node:path";

export type Environment = Readonly<Record<string, string | undefined>>;

/** Finds a program in the absolute folders of the PATH. Relative ones would depend on the working directory. */
export async function findProgram(name: string, env: Environment): Promise<string | undefined> {
  const folders = (env["PATH"] ?? env["Path"] ?? "/usr/bin:/bin").split(delimiter).filter(isAbsolute);
  for (const folder of folders) {
    const path = join(folder, process.platform === "win32" ? `${name}.exe` : name);
    if (await isExecutable(path)) return path;
  }
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
