import { once } from "../../base/async.ts";
import type { Environment } from "../process/find-program.ts";
import type { ChangeTracker } from "./command-changes.ts";

/** `env` is the environment of commands. Loads nothing before the first command. */
export function openChangeTracker(env: () => Environment): ChangeTracker {
  const tracker = once(async () => {
    const { Tracker } = await import("./tracker.ts");
    return new Tracker(env);
  });
  return { start: async (roots, named) => (await tracker()).start(roots, named) };
}
