import { win32 } from "node:path";

type Environment = Readonly<Record<string, string | undefined>>;

/** What is given to `spawn`. */
export interface SpawnedCommand {
  readonly command: string;
  readonly args: readonly string[];
  /** The arguments are quoted already. */
  readonly verbatim: boolean;
}

/** What Windows itself can start; all else that PATHEXT names is a script for `cmd`. */
const programs = new Set([".exe", ".com"]);
const usualExtensions = ".COM;.EXE;.BAT;.CMD";
/** What means something to `cmd`, in quotes or not. */
const special = /[()\][%!^"`<>&|;, *?]/g;

/**
 * A command as Windows can start it. Scripts such as `npx.cmd` need `cmd` to run them, which Node refuses to call by
 * itself since CVE-2024-27980. `isFile` tells whether there is a file at an absolute path.
 */
export function windowsCommand(
  command: string,
  args: readonly string[],
  { env, cwd, isFile }: { env: Environment; cwd: string; isFile: (path: string) => boolean },
): SpawnedCommand {
  const found = candidates(command, env, cwd).find(isFile);
  if (found === undefined || programs.has(win32.extname(found).toLowerCase()))
    return { command: found ?? command, args, verbatim: false };
  const line = [escapeCommand(found), ...args.map(escapeArgument)].join(" ");
  return {
    command: valueOf(env, "ComSpec") ?? "cmd.exe",
    args: ["/d", "/s", "/c", `"${line}"`],
    verbatim: true,
  };
}

/** Where Windows looks for a command, in its order; a name without an extension may have each of PATHEXT. */
function candidates(command: string, env: Environment, cwd: string): string[] {
  const hasFolder = /[\\/]/.test(command) || win32.isAbsolute(command);
  const folders = hasFolder ? [cwd] : pathFolders(env);
  const extensions = (valueOf(env, "PATHEXT") ?? usualExtensions).split(";").filter((one) => one !== "");
  const hasExtension = extensions.some((one) => command.toLowerCase().endsWith(one.toLowerCase()));
  const endings = hasExtension ? [""] : extensions.map((one) => one.toLowerCase());
  return folders.flatMap((folder) => endings.map((ending) => win32.resolve(folder, command + ending)));
}

/** Not the working directory: what a repository calls `npx.cmd` is not meant. */
function pathFolders(env: Environment): string[] {
  const folders = (valueOf(env, "PATH") ?? "").split(";").map((folder) => folder.replaceAll('"', ""));
  return folders.filter((folder) => win32.isAbsolute(folder));
}

/** Names of variables have no case on Windows. */
function valueOf(env: Environment, name: string): string | undefined {
  const key = Object.keys(env).find((one) => one.toLowerCase() === name.toLowerCase());
  return key === undefined ? undefined : env[key];
}

function escapeCommand(path: string): string {
  return path.replaceAll(special, "^$&");
}

/**
 * Quoted as programs read their command line (backslashes double before a quote and at the end), then with a caret
 * before whatever `cmd` would read; twice, because a script passes its arguments on to `cmd` once more.
 */
function escapeArgument(argument: string): string {
  const quoted = `"${argument.replaceAll(/(\\*)"/g, '$1$1\\"').replace(/(\\*)$/, "$1$1")}"`;
  return quoted.replaceAll(special, "^$&").replaceAll(special, "^$&");
}
