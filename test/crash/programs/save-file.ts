import { readFileSync, renameSync, writeFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { retryInUse } from "../../../src/base/files/retry-in-use.ts";

/**
 * Saves a file again and again like an editor: in place, or by renaming. Prints each save that disappeared
 * without a later save; lines that others add after it are no loss. On Windows editors try again while the file is open.
 */
const [path = "", how = "place", rounds = "1"] = process.argv.slice(2);

function save(text: string): void {
  if (how === "place") return writeFileSync(path, text);
  writeFileSync(`${path}.saving`, text);
  renameSync(`${path}.saving`, path);
}

/** A write that has just replaced a save restores it within milliseconds. */
async function isThere(text: string): Promise<boolean> {
  for (let attempt = 0; attempt < 100; attempt++) {
    const stored = await retryInUse(() => readFileSync(path, "utf8"));
    if (stored.startsWith(text)) return true;
    await sleep(5);
  }
  return false;
}

for (let round = 0; round < Number(rounds); round++) {
  const text = `save ${round}\n`;
  await retryInUse(() => save(text));
  await sleep(Math.random() * 8);
  if (!(await isThere(text))) process.stdout.write(text);
}
