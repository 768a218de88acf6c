import type { Files } from "../files/files.ts";
import type { ChangeTracker } from "./command-changes.ts";

/** Reports writes to the tracker, so that commands that run at the same time do not count them as theirs. */
export function reportWrites(files: Files, tracker: ChangeTracker): Files {
  return {
    read: (path) => files.read(path),
    lock: (paths, task) => files.lock(paths, task),
    write: async (path, bytes, expected, newMode) => {
      const written = await files.write(path, bytes, expected, newMode);
      tracker.acknowledge(path, { before: expected, after: written.bytes ?? Buffer.from(bytes) });
      return written;
    },
    remove: async (path, expected) => {
      await files.remove(path, expected);
      tracker.acknowledge(path, { before: expected, after: null });
    },
  };
}
