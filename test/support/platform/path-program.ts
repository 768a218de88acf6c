import { chmod, mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";

/** The ending of the file that {@link writeProgram} writes for this system. */
export const commandEnding = process.platform === "win32" ? ".cmd" : "";

/**
 * Writes a program for the PATH of a story: a Node script with a file that each system starts by the name. Returns the
 * path of that file. Windows gets a file for cmd.exe, and one for its `bash`, as npm writes them.
 */
export async function writeProgram(folder: string, name: string, script = ""): Promise<string> {
  await mkdir(folder, { recursive: true });
  const module = join(folder, `${name}.mjs`);
  const program = join(folder, name);
  await writeFile(module, script);
  const [node, path] = [process.execPath, module].map((one) => one.replaceAll("\\", "/"));
  await writeFile(program, `#!/bin/sh\nexec '${node}' '${path}' "$@"\n`);
  await chmod(program, 0o755);
  if (commandEnding === "") return program;
  await writeFile(`${program}${commandEnding}`, `@"${process.execPath}" "%~dp0${name}.mjs" %*\r\n`);
  return `${program}${commandEnding}`;
}
