import { delimiter, join } from "node:path";

/** Only the variables that a program needs, and a new home. */
export function environment(home: string): Record<string, string> {
  const stored = ["PATH", "TMPDIR", "TEMP", "TMP", "SystemRoot", "ComSpec", "PATHEXT"];
  const own = stored.flatMap((name) =>
    process.env[name] === undefined ? [] : [[name, process.env[name]] as const],
  );
  const { PATH = "", ...others } = Object.fromEntries(own);
  // The programs of this repository's packages are not installed on a user's machine.
  const folders = PATH.split(delimiter).filter((folder) => !folder.includes("node_modules"));
  return {
    ...others,
    PATH: folders.join(delimiter),
    HOME: home,
    USERPROFILE: home,
    XDG_CONFIG_HOME: join(home, ".config"),
    XDG_DATA_HOME: join(home, ".local", "share"),
    // Compiled code alone is kept there; sharing it spares each program the compiling.
    XDG_CACHE_HOME: join(import.meta.dirname, "../../../node_modules/.cache/fairlead-tests"),
    XDG_STATE_HOME: join(home, ".local", "state"),
  };
}
