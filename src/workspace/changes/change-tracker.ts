import { once } from "../../base/async.ts";
import type { Environment } from "../process/find-program.ts";
import type { ChangeTracker } from "./command-changes.ts";
import type { Tracker } from "./tracker.ts";

/** `env` is the environment of commands. Loads nothing before the first command. */
export function openChangeTracker(env: () => Environment): ChangeTracker {
  let loaded: Tracker | undefined;
  const load = once(async () => {
    const { Tracker } = await import("./tracker.ts");
    loaded = new Tracker(env);
    return loaded;
  });
  return {
    start: async (roots, named) => (await load()).start(roots, named),
    acknowledge: (path, write) => loaded?.acknowledge(path, write),
  };
}
