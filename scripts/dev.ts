import { spawn } from "node:child_process";
import { once } from "node:events";
import { watch } from "node:fs";
import { basename, dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { sourcePaths } from "./sources.ts";

// Builds the bundle, then builds it again after each change of a source, until the process is stopped.
const root = join(import.meta.dirname, "..");

/** Editors write a file in several steps; a build starts when nothing has changed for this long. */
const quietMs = 100;

const changed = new Set<string>();
let signalChange = Promise.withResolvers<void>();

for (const path of sourcePaths) {
  // A single file is watched through its folder: editors replace files, which ends a watch of the file itself.
  const isFolder = !path.includes(".");
  const folder = join(root, isFolder ? path : dirname(path));
  watch(folder, { recursive: isFolder }, (_, name) => {
    if (name === null || (!isFolder && name !== basename(path))) return;
    changed.add(isFolder ? join(path, name) : path);
    signalChange.resolve();
  });
}

await build("start");
for (;;) {
  await signalChange.promise;
  for (let count = -1; count !== changed.size; await sleep(quietMs)) count = changed.size;
  const [first, ...others] = changed;
  changed.clear();
  signalChange = Promise.withResolvers();
  await build(others.length === 0 ? `${first}` : `${first} and ${others.length} more`);
}

async function build(reason: string): Promise<void> {
  const startedAt = performance.now();
  const child = spawn(process.execPath, [join(root, "scripts", "build.ts")], { cwd: root, stdio: "inherit" });
  const [code] = await once(child, "exit");
  const seconds = ((performance.now() - startedAt) / 1_000).toFixed(1);
  const time = new Date().toTimeString().slice(0, 8);
  console.log(
    code === 0
      ? `${time} built in ${seconds} s (${reason})`
      : `${time} build failed (${reason}); dist/ keeps the last build that worked. Waiting for a change.`,
  );
}
