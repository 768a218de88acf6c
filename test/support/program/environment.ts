import { join } from "node:path";

/** No more of this machine than a program needs, and a home of its own. */
export function environment(home: string): Record<string, string> {
  const stored = ["PATH", "TMPDIR", "TEMP", "TMP", "SystemRoot", "ComSpec", "PATHEXT"];
  const own = stored.flatMap((name) =>
    process.env[name] === undefined ? [] : [[name, process.env[name]] as const],
  );
  return {
    ...Object.fromEntries(own),
    HOME: home,
    USERPROFILE: home,
    XDG_CONFIG_HOME: join(home, ".config"),
    XDG_DATA_HOME: join(home, ".local", "share"),
    // Compiled code alone is kept there; sharing it spares each program the compiling.
    XDG_CACHE_HOME: join(import.meta.dirname, "../../../node_modules/.cache/fairlead-tests"),
    XDG_STATE_HOME: join(home, ".local", "state"),
  };
}
