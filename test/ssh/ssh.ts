import { performance } from "node:perf_hooks";
import { findProgram } from "../../src/workspace/process/find-program.ts";
import { scenes } from "./scenes.ts";
import { Stage } from "./stage.ts";

// Plays the scenes, each with its own ssh server. Prints a line for each. Arguments: parts of names, to play only these.

/** Distributions install the server where only root's PATH includes it. */
const serverPath = `${process.env["PATH"]}:/usr/sbin:/usr/local/sbin`;

const sshd = await findProgram("sshd", { PATH: serverPath });
const needed = { ssh: await findProgram("ssh", process.env), sshd };
const missing = Object.entries(needed).flatMap(([name, path]) => (path === undefined ? [name] : []));
if (sshd === undefined || missing.length > 0) {
  console.error(`Did not run: ${missing.join(" and ")} not found. Install OpenSSH's client and server.`);
  process.exit(1);
}

const wanted = process.argv.slice(2);
const chosen = Object.entries(scenes).filter(
  ([name]) => wanted.length === 0 || wanted.some((part) => name.includes(part)),
);
let failures = 0;
for (const [name, play] of chosen) {
  const start = performance.now();
  try {
    await using stage = await Stage.open(sshd);
    await stage.play(play);
    console.log(`passed: ${name} (${((performance.now() - start) / 1_000).toFixed(1)} s)`);
  } catch (error) {
    failures++;
    console.log(`FAILED: ${name}\n${error instanceof Error ? error.stack : String(error)}`);
  }
}
console.log(`${chosen.length - failures} passed, ${failures} failed`);
process.exit(failures === 0 && chosen.length > 0 ? 0 : 1);
