import { join } from "node:path";

/** Where this person's files live. All absolute. */
export interface UserFolders {
  readonly config: string;
  readonly data: string;
  readonly cache: string;
  readonly state: string;
}

export type Env = Readonly<Record<string, string | undefined>>;

/** What the operating system says of its person. */
export interface Home {
  readonly env: Env;
  readonly home: string;
  readonly platform: NodeJS.Platform;
}

/** The XDG folders of the program; macOS uses them too, Windows only where the variables are set. */
export function userFolders(where: Home): UserFolders {
  const base = baseFolders(where);
  return {
    config: join(base.config, "fairlead"),
    data: join(base.data, "fairlead"),
    cache: join(base.cache, "fairlead"),
    state: join(base.state, "fairlead"),
  };
}

/** The folder in which each program has its own configuration folder. */
export const configHome = (where: Home): string => baseFolders(where).config;

/** Where an administrator puts configuration that nobody overrides. */
export function managedFolder({ env, platform }: Home): string {
  if (platform === "win32") return join(env.ProgramData ?? "C:\\ProgramData", "fairlead");
  if (platform === "darwin") return "/Library/Application Support/fairlead";
  return "/etc/fairlead";
}

function baseFolders({ env, home, platform }: Home): UserFolders {
  const roaming = env.APPDATA || join(home, "AppData", "Roaming");
  const local = env.LOCALAPPDATA || join(home, "AppData", "Local");
  const windows = platform === "win32";
  return {
    config: env.XDG_CONFIG_HOME || (windows ? roaming : join(home, ".config")),
    data: env.XDG_DATA_HOME || (windows ? local : join(home, ".local", "share")),
    cache: env.XDG_CACHE_HOME || (windows ? join(local, "Cache") : join(home, ".cache")),
    state: env.XDG_STATE_HOME || (windows ? join(local, "State") : join(home, ".local", "state")),
  };
}
