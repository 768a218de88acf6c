import { win32 } from "node:path";
import { type Environment, findProgram, isExecutable } from "./find-program.ts";

/** Returns `bash`, else the shell that each system has. */
export async function findShell(env: Environment): Promise<string> {
  const bash = await findBash(env);
  return bash ?? (process.platform === "win32" ? findCmd(env) : "/bin/sh");
}

export async function findBash(env: Environment): Promise<string | undefined> {
  if (process.platform !== "win32") return findProgram("bash", env);
  for (const path of listBashPaths(env)) if (await isExecutable(path)) return path;
  return undefined;
}

/** Returns an absolute path: Windows would look for a name in the working directory first. */
function findCmd(env: Environment): string {
  return env["ComSpec"] ?? win32.join(process.env["SystemRoot"] ?? "C:\\Windows", "System32", "cmd.exe");
}

/**
 * Lists where `bash` may be on Windows: on the PATH, then where Git for Windows has it, whose installer puts only `git`
 * on the PATH. Excludes the `bash` of WSL, which runs commands in another system with other paths.
 */
export function listBashPaths(env: Environment): string[] {
  const onPath = (env["PATH"] ?? env["Path"] ?? "").split(";").filter((folder) => win32.isAbsolute(folder));
  const besideGit = onPath
    .filter((folder) => /[\\/]git[\\/](?:cmd|mingw64[\\/]bin)[\\/]?$/i.test(folder))
    .map((folder) => folder.replace(/[\\/](?:cmd|mingw64[\\/]bin)[\\/]?$/i, ""));
  const programs = [env["ProgramFiles"], env["LOCALAPPDATA"] && win32.join(env["LOCALAPPDATA"], "Programs")];
  const gits = [...besideGit, ...programs.flatMap((folder) => (folder ? [win32.join(folder, "Git")] : []))];
  return [
    ...onPath.filter((folder) => !isOfWsl(folder)).map((folder) => win32.join(folder, "bash.exe")),
    ...gits.map((git) => win32.join(git, "bin", "bash.exe")),
  ];
}

function isOfWsl(folder: string): boolean {
  return /[\\/](?:System32|SysWOW64|Sysnative|WindowsApps)[\\/]?$/i.test(folder);
}
