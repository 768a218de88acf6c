import { constants } from "node:fs";
import { access } from "node:fs/promises";
import { delimiter, isAbsolute, join } from "node:path";

export type Environment = Readonly<Record<string, string | undefined>>;

/** Only absolute folders of the PATH count: others would lead into whatever folder the program runs in. */
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
