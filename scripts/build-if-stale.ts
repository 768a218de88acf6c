import { spawnSync } from "node:child_process";
import { closeSync, openSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { tryLock } from "fs-native-extensions";
import { isBundleStale } from "./sources.ts";

const root = join(import.meta.dirname, "..");

/** Pause between two attempts to take the lock of the build. */
const pollMs = 50;

/**
 * Builds the bundle if a source is newer. Vitest calls this once before the tests that run the program. Of several
 * processes that start together, one builds and the others wait for it.
 */
export default async function buildIfStale(): Promise<void> {
  if (!isBundleStale(root)) return;
  // The system releases the lock when the process ends, even if it is killed.
  const lock = openSync(join(root, "node_modules", ".fairlead-build.lock"), "a+");
  try {
    while (!tryLock(lock)) await sleep(pollMs);
    if (isBundleStale(root)) build();
  } finally {
    closeSync(lock);
  }
}

function build(): void {
  console.error("Sources are newer than the bundle: building.");
  const { status } = spawnSync(process.execPath, [join(root, "scripts", "start-build.cjs")], {
    stdio: "inherit",
  });
  if (status !== 0) throw new Error("The build failed. Fix what it prints above and run the tests again.");
}
