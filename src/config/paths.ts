import { homedir, userInfo } from "node:os";
import { join, posix, win32 } from "node:path";

/** Absolute paths of the user's folders. */
export interface UserFolders {
  readonly config: string;
  readonly data: string;
  readonly cache: string;
  readonly state: string;
  /** For sockets; removed by most systems when the user logs out. */
  readonly runtime: string;
  /** Worktrees of sessions. Beside the data folder, which tools and sandboxed commands must not change. */
  readonly worktrees: string;
}

export type Env = Readonly<Record<string, string | undefined>>;

/** Environment, home folder and platform of the user. */
export interface Home {
  readonly env: Env;
  readonly home: string;
  readonly platform: NodeJS.Platform;
}

/** The program's XDG folders. macOS uses them too, Windows only if the variables are set. */
export function userFolders(where: Home): UserFolders {
  const base = baseFolders(where);
  const runtime = xdgFolder("XDG_RUNTIME_DIR", where);
  const local = join(base.state, "fairlead", "run");
  return {
    config: join(base.config, "fairlead"),
    data: join(base.data, "fairlead"),
    cache: join(base.cache, "fairlead"),
    state: join(base.state, "fairlead"),
    runtime: runtime === undefined ? shortenForSockets(local, where) : join(runtime, "fairlead"),
    worktrees: join(base.data, "fairlead-worktrees"),
  };
}

/** Longest path of a folder for sockets, in bytes: macOS accepts 103 for a socket, whose name has up to 13. */
const longestSocketFolder = 90;

/** Returns the folder, or a short one of the user if sockets in it would have too long a path. */
function shortenForSockets(folder: string, { platform }: Home): string {
  const uid = process.getuid?.();
  if (platform === "win32" || uid === undefined || Buffer.byteLength(folder) <= longestSocketFolder)
    return folder;
  return `/tmp/fairlead-${uid}`;
}

/** Folder in which each program has its own configuration folder. */
export const configHome = (where: Home): string => baseFolders(where).config;

/** Folder of the administrator's configuration, which has the highest precedence. */
export function managedFolder({ env, platform }: Home): string {
  if (platform === "win32") return join(env.ProgramData ?? "C:\\ProgramData", "fairlead");
  if (platform === "darwin") return "/Library/Application Support/fairlead";
  return "/etc/fairlead";
}

const xdgVariables = [
  "XDG_CONFIG_HOME",
  "XDG_DATA_HOME",
  "XDG_CACHE_HOME",
  "XDG_STATE_HOME",
  "XDG_RUNTIME_DIR",
] as const;
type XdgVariable = (typeof xdgVariables)[number];

/** XDG variables without an absolute path, which the XDG standard says to ignore. */
export function ignoredVariables({ env, platform }: Pick<Home, "env" | "platform">): string[] {
  return [...xdgVariables, "HOME"].filter(
    (name) => env[name] && absolutePath(env[name], platform) === undefined,
  );
}

/** Folder named by an XDG variable; undefined if it is not an absolute path. */
export function xdgFolder(
  name: XdgVariable,
  { env, platform }: Pick<Home, "env" | "platform">,
): string | undefined {
  return absolutePath(env[name], platform);
}

/** The home folder from the environment, else from the operating system, else the root folder, as Docker sets it. */
export function homeFolder({ env, platform }: Pick<Home, "env" | "platform">): string {
  return absolutePath(env["HOME"], platform) ?? absolutePath(env["USERPROFILE"], platform) ?? homeOfUser();
}

function homeOfUser(): string {
  try {
    return userInfo().homedir;
  } catch {
    // A container may run as a user id that the system does not know.
    return process.platform === "win32" ? homedir() : "/";
  }
}

function absolutePath(path: string | undefined, platform: NodeJS.Platform): string | undefined {
  const paths = platform === "win32" ? win32 : posix;
  return path !== undefined && paths.isAbsolute(path) ? path : undefined;
}

function baseFolders(where: Home): Omit<UserFolders, "runtime" | "worktrees"> {
  const { env, home, platform } = where;
  const roaming = env.APPDATA || join(home, "AppData", "Roaming");
  const local = env.LOCALAPPDATA || join(home, "AppData", "Local");
  const windows = platform === "win32";
  return {
    config: xdgFolder("XDG_CONFIG_HOME", where) ?? (windows ? roaming : join(home, ".config")),
    data: xdgFolder("XDG_DATA_HOME", where) ?? (windows ? local : join(home, ".local", "share")),
    cache: xdgFolder("XDG_CACHE_HOME", where) ?? (windows ? join(local, "Cache") : join(home, ".cache")),
    state:
      xdgFolder("XDG_STATE_HOME", where) ?? (windows ? join(local, "State") : join(home, ".local", "state")),
  };
}
