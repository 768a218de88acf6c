import { mkdirSync, statSync, writeFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { userFolders } from "../../../src/config/paths.ts";

/** Returns this machine's PATH without the programs of the repository's packages, which users have not installed. */
function usersPath(): string {
  const folders = (process.env["PATH"] ?? "").split(delimiter);
  return folders.filter((folder) => !folder.includes("node_modules")).join(delimiter);
}

/** Returns a PATH that has `make` on every machine, see `bin/make`. */
export function pathWithMake(): string {
  return [join(import.meta.dirname, "bin"), usersPath()].join(delimiter);
}

/** Returns the folder of the sockets of programs with this home. */
export function socketFolder(home: string): string {
  return userFolders({ env: environment(home), home, platform: process.platform }).runtime;
}

/** Returns only the variables that a program needs, and a home of a user who has used the program before. */
export function environment(home: string): Record<string, string> {
  const stored = ["PATH", "TMPDIR", "TEMP", "TMP", "SystemRoot", "ComSpec", "PATHEXT"];
  const own = stored.flatMap((name) =>
    process.env[name] === undefined ? [] : [[name, process.env[name]] as const],
  );
  const { PATH: _, ...others } = Object.fromEntries(own);
  const state = join(home, ".local", "state");
  // A test of damaged homes may have put a file at this path.
  if (!statSync(state, { throwIfNoEntry: false })?.isFile()) {
    mkdirSync(join(state, "fairlead"), { recursive: true, mode: 0o700 });
    writeFileSync(join(state, "fairlead", "defaults-explained"), "", { mode: 0o600 });
  }
  return {
    ...others,
    PATH: usersPath(),
    HOME: home,
    USERPROFILE: home,
    XDG_CONFIG_HOME: join(home, ".config"),
    XDG_DATA_HOME: join(home, ".local", "share"),
    // The cache contains only compiled code; sharing it spares each program the compilation.
    XDG_CACHE_HOME: join(import.meta.dirname, "../../../node_modules/.cache/fairlead-tests"),
    XDG_STATE_HOME: state,
    // The one of Git for Windows changes line ends.
    GIT_CONFIG_NOSYSTEM: "1",
  };
}
