import { win32 } from "node:path";

type Environment = Readonly<Record<string, string | undefined>>;

/** Arguments for `spawn`. */
export interface SpawnedCommand {
  readonly command: string;
  readonly args: readonly string[];
  /** The arguments are already quoted. */
  readonly verbatim: boolean;
}

/** Extensions that Windows can start; other PATHEXT entries are scripts for `cmd`. */
const programs = new Set([".exe", ".com"]);
const usualExtensions = ".COM;.EXE;.BAT;.CMD";
/** Special characters of `cmd`, quoted or not. */
const special = /[()\][%!^"`<>&|;, *?]/g;

/**
 * Resolves a command for Windows. Scripts such as `npx.cmd` run through `cmd`, which Node refuses to do since
 * CVE-2024-27980. `isFile` returns whether a file exists at an absolute path. Undefined for a name that is not on
 * the PATH: Windows would search the working directory first.
 */
export function resolveWindowsCommand(
  command: string,
  args: readonly string[],
  { env, cwd, isFile }: { env: Environment; cwd: string; isFile: (path: string) => boolean },
): SpawnedCommand | undefined {
  const found = listCandidates(command, env, cwd).find(isFile);
  if (found === undefined && !hasFolder(command)) return undefined;
  if (found === undefined || programs.has(win32.extname(found).toLowerCase()))
    return { command: found ?? command, args, verbatim: false };
  const line = [escapeCommand(found), ...args.map(escapeArgument)].join(" ");
  return {
    command: getVariable(env, "ComSpec") ?? "cmd.exe",
    args: ["/d", "/s", "/c", `"${line}"`],
    verbatim: true,
  };
}

const hasFolder = (command: string): boolean => /[\\/]/.test(command) || win32.isAbsolute(command);

/** Paths that Windows would try, in order; a name without an extension is tried with each of PATHEXT. */
function listCandidates(command: string, env: Environment, cwd: string): string[] {
  const folders = hasFolder(command) ? [cwd] : listPathFolders(env);
  const extensions = (getVariable(env, "PATHEXT") ?? usualExtensions).split(";").filter((one) => one !== "");
  const hasExtension = extensions.some((one) => command.toLowerCase().endsWith(one.toLowerCase()));
  const endings = hasExtension ? [""] : extensions.map((one) => one.toLowerCase());
  return folders.flatMap((folder) => endings.map((ending) => win32.resolve(folder, command + ending)));
}

/** Excludes the working directory, so that a repository's `npx.cmd` is not run. */
function listPathFolders(env: Environment): string[] {
  const folders = (getVariable(env, "PATH") ?? "").split(";").map((folder) => folder.replaceAll('"', ""));
  return folders.filter((folder) => win32.isAbsolute(folder));
}

/** Variable names are case-insensitive on Windows. */
function getVariable(env: Environment, name: string): string | undefined {
  const key = Object.keys(env).find((one) => one.toLowerCase() === name.toLowerCase());
  return key === undefined ? undefined : env[key];
}

function escapeCommand(path: string): string {
  return path.replaceAll(special, "^$&");
}

/**
 * Quotes for program command lines (backslashes double before a quote and at the end), then escapes for
 * `cmd`; twice, because a script passes its arguments to `cmd` again.
 */
function escapeArgument(argument: string): string {
  const quoted = `"${argument.replaceAll(/(\\*)"/g, '$1$1\\"').replace(/(\\*)$/, "$1$1")}"`;
  return quoted.replaceAll(special, "^$&").replaceAll(special, "^$&");
}
