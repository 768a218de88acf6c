import { mkdirSync, statSync, writeFileSync } from "node:fs";
import { delimiter, join } from "node:path";

/** Only the variables that a program needs, and a home of a user who has used the program before. */
export function environment(home: string): Record<string, string> {
  const stored = ["PATH", "TMPDIR", "TEMP", "TMP", "SystemRoot", "ComSpec", "PATHEXT"];
  const own = stored.flatMap((name) =>
    process.env[name] === undefined ? [] : [[name, process.env[name]] as const],
  );
  const { PATH = "", ...others } = Object.fromEntries(own);
  // The programs of this repository's packages are not installed on a user's machine.
  const folders = PATH.split(delimiter).filter((folder) => !folder.includes("node_modules"));
  const state = join(home, ".local", "state");
  // A test of damaged homes may have put a file there.
  if (!statSync(state, { throwIfNoEntry: false })?.isFile()) {
    mkdirSync(join(state, "fairlead"), { recursive: true, mode: 0o700 });
    writeFileSync(join(state, "fairlead", "defaults-explained"), "", { mode: 0o600 });
  }
  return {
    ...others,
    PATH: folders.join(delimiter),
    HOME: home,
    USERPROFILE: home,
    XDG_CONFIG_HOME: join(home, ".config"),
    XDG_DATA_HOME: join(home, ".local", "share"),
    // Compiled code alone is kept there; sharing it spares each program the compiling.
    XDG_CACHE_HOME: join(import.meta.dirname, "../../../node_modules/.cache/fairlead-tests"),
    XDG_STATE_HOME: state,
  };
}
