import { setTimeout as sleep } from "node:timers/promises";
import { openFiles } from "../../../src/workspace/files/disk-files.ts";
import { StaleFile } from "../../../src/workspace/files/files.ts";
import { openSnapshots } from "../../../src/workspace/files/snapshot.ts";

/**
 * Adds lines to a file like the program, in a separate process, and prints the added lines. With a pause it
 * waits between the check of the file and the write, like an edit.
 */
const [path = "", folder = "", name = "", rounds = "1", pauseMs = "0"] = process.argv.slice(2);
const snapshots = openSnapshots(`${folder}/snapshot`);
const files = openFiles({ lockFolder: `${folder}/file-locks`, keep: (bytes) => snapshots.save(bytes) });

for (let round = 0; round < Number(rounds); round++) {
  const { bytes, hash } = await files.read(path);
  await sleep(Number(pauseMs));
  const line = `${name} ${round}\n`;
  try {
    await files.lock([path], () => files.write(path, Buffer.concat([bytes, Buffer.from(line)]), hash));
    process.stdout.write(line);
  } catch (error) {
    if (!(error instanceof StaleFile)) throw error;
  }
}
