import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { expect, test } from "vitest";

const guard = pathToFileURL(join(import.meta.dirname, "../../src/cli/exit-guard.ts")).href;

/** How a process ends that has the guard and then does this. */
async function endOf(then: string): Promise<unknown[]> {
  const script = `import { guardExit } from ${JSON.stringify(guard)}; guardExit(); ${then}`;
  const child = spawn(process.execPath, ["--input-type=module", "--eval", script], { stdio: "ignore" });
  return once(child, "exit");
}

test.skipIf(process.platform === "win32")(
  "a process that cannot end is ended; one that can ends by itself",
  async () => {
    expect(await Promise.all([endOf("for (;;);"), endOf("process.exit(3);")])).toEqual([
      [null, "SIGKILL"],
      [3, null],
    ]);
  },
);
