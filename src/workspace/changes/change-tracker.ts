import { once } from "../../base/async.ts";
import type { Environment } from "../process/find-program.ts";
import type { ChangeTracker } from "./command-changes.ts";
import type { Tracker } from "./tracker.ts";

/**
 * Loads nothing before the first command.
 * - `env`: the environment of commands.
 * - `ownFolders`: the program's folders, whose files are not tracked.
 */
export function openChangeTracker(env: () => Environment, ownFolders: readonly string[]): ChangeTracker {
  let loaded: Tracker | undefined;
  const load = once(async () => {
    const { Tracker } = await import("./tracker.ts");
    loaded = new Tracker(env, ownFolders);
    return loaded;
  });
  return {
    start: async (roots, named) => (await load()).start(roots, named),
    acknowledge: (path, write) => loaded?.acknowledge(path, write),
  };
}
