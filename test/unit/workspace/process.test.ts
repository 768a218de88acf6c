import { spawn } from "node:child_process";
import { once } from "node:events";
import { copyFileSync, mkdtempSync, readdirSync, readFileSync, realpathSync, writeFileSync } from "node:fs";
import { rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { execa } from "execa";
import { afterEach, beforeEach, expect, test } from "vitest";
import { textOf } from "../../../src/base/secrets/text-or-bytes.ts";
import { openPipedProcesses } from "../../../src/workspace/process/piped-process.ts";
import { endTree, findRunningGroups } from "../../../src/workspace/process/process-tree.ts";
import {
  openProcesses,
  type ProcessOutcome,
  type Processes,
} from "../../../src/workspace/process/process.ts";
import { Watchdog } from "../../../src/workspace/process/watchdog.ts";
import {
  endlessCommand,
  lacksProcessGroups,
  lacksResourceLimits,
  lacksSignals,
} from "../../support/platform/platform.ts";

const MARK = "FAIRLEAD_TEST_RUN";
let folder: string;
let run: string;
let processes: Processes;

beforeEach(() => {
  folder = realpathSync.native(mkdtempSync(join(tmpdir(), "fairlead-process-")));
  run = `run-${Math.random()}`;
  processes = openProcesses({
    env: () => ({ PATH: process.env["PATH"], [MARK]: run }),
    watchdog: new Watchdog(process.env["PATH"]),
  });
});

afterEach(async () => {
  await processes.endAll();
  // Windows keeps the folder of a process for a moment after its end.
  await rm(folder, { recursive: true, maxRetries: 5, retryDelay: 100 });
});

interface Options {
  timeoutMs?: number;
  signal?: AbortSignal;
  onOutput?: (text: string) => Promise<void>;
}

async function sh(
  command: string,
  options: Options = {},
): Promise<{ outcome: ProcessOutcome; text: string; ms: number }> {
  const start = performance.now();
  let text = "";
  const outcome = await processes.run({
    command,
    cwd: folder,
    timeoutMs: options.timeoutMs ?? 20_000,
    signal: options.signal ?? new AbortController().signal,
    onOutput: async (piece) => {
      text += textOf(piece);
      await options.onOutput?.(textOf(piece));
    },
  });
  return { outcome, text, ms: performance.now() - start };
}

const exited = (exitCode: number): ProcessOutcome => ({
  end: "exited",
  exitCode,
  signalName: null,
  background: false,
});

/** Command lines of processes that this test started and that still run. */
function leftovers(): string[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .filter((pid) => read(`/proc/${pid}/environ`).includes(`${MARK}=${run}`))
    .map((pid) => read(`/proc/${pid}/cmdline`).replaceAll("\0", " "));
}

function read(path: string): string {
  try {
    return readFileSync(path, "latin1");
  } catch {
    return "";
  }
}

const onLinux = process.platform === "linux";
function expectNoLeftovers() {
  if (onLinux) expect(leftovers()).toEqual([]);
}

test("returns the output and the exit code", async () => {
  const { outcome, text } = await sh("echo one; echo two >&2; exit 3");
  expect({ outcome, text }).toEqual({ outcome: exited(3), text: "one\ntwo\n" });
});

test("keeps stdout and stderr in the order in which they were written", async () => {
  const { text } = await sh("for i in $(seq 500); do echo o$i; echo e$i >&2; done");
  expect(text).toBe(Array.from({ length: 500 }, (_, index) => `o${index + 1}\ne${index + 1}\n`).join(""));
});

test("gives commands no input", async () => {
  expect(await sh("cat; echo end")).toMatchObject({ text: "end\n", outcome: exited(0) });
});

test.skipIf(lacksSignals)("names the signal that ended the shell", async () => {
  const { outcome } = await sh("kill -9 $$");
  expect(outcome).toEqual({ end: "exited", exitCode: null, signalName: "SIGKILL", background: false });
});

test("does not wait for background processes", async () => {
  const { outcome, text, ms } = await sh("echo started; until [ -e end ]; do sleep 0.1; done & true");
  expect({ outcome, text }).toEqual({ outcome: { ...exited(0), background: true }, text: "started\n" });
  expect(ms).toBeLessThan(5_000);
  writeFileSync(join(folder, "end"), "");
});

test.skipIf(lacksProcessGroups)("ends background processes at its own end", async () => {
  const { outcome, text } = await sh("echo started; sleep 1000 & true");
  expect({ outcome, text }).toEqual({ outcome: { ...exited(0), background: true }, text: "started\n" });
  await processes.endAll();
  expectNoLeftovers();
});

test("lets a background process continue to print after its command has ended", async () => {
  const script = `(sleep 0.4; seq 200000; echo ok > ok) &`;
  expect((await sh(script)).outcome.background).toBe(true);
  const { text } = await sh(`until [ -e ok ]; do sleep 0.02; done; cat ok`, { timeoutMs: 10_000 });
  expect(text).toBe("ok\n");
});

test("a chatty background process cannot hold the call", async () => {
  const { outcome, ms } = await sh("(until [ -e end ]; do echo tick; sleep 0.05; done) & true");
  expect(outcome.background).toBe(true);
  expect(ms).toBeLessThan(8_000);
  writeFileSync(join(folder, "end"), "");
});

test.skipIf(lacksSignals)(
  "ends everything at a timeout, also processes that ignore TERM or left the group",
  async () => {
    const stubborn = "trap '' TERM; while :; do sleep 0.1; done";
    // Only on Linux processes that left the group are found.
    const leave = onLinux ? "setsid " : "";
    const command = `echo begin; ${leave}sh -c "${stubborn}" & ${leave}sleep 1000 & sh -c "${stubborn}" & sleep 1000`;
    const { outcome, text, ms } = await sh(command, { timeoutMs: 300 });
    expect({ outcome: outcome.end, text }).toEqual({ outcome: "timed-out", text: "begin\n" });
    expect(ms).toBeGreaterThan(3_000);
    expect(ms).toBeLessThan(8_000);
    expectNoLeftovers();
  },
);

test.runIf(onLinux)("ends a descendant that left the group and emptied its environment", async () => {
  const controller = new AbortController();
  const { outcome, text } = await sh("setsid env -i /bin/sh -c 'echo $$; exec sleep 1000' & wait", {
    signal: controller.signal,
    onOutput: async () => controller.abort(),
  });
  expect(outcome.end).toBe("cancelled");
  expect(read(`/proc/${text.trim()}/cmdline`)).toBe("");
});

test("ends soon after a cancel", async () => {
  const controller = new AbortController();
  let cancelledAt = 0;
  const { outcome } = await sh(`echo go; ${endlessCommand}`, {
    signal: controller.signal,
    onOutput: async () => {
      cancelledAt = performance.now();
      controller.abort();
    },
  });
  expect(performance.now() - cancelledAt).toBeLessThan(5_000);
  const signalName = lacksSignals ? null : "SIGTERM";
  expect(outcome).toEqual({ end: "cancelled", exitCode: null, signalName, background: false });
  expectNoLeftovers();
});

test("ends within the deadline even if the reader never reads its output", async () => {
  const controller = new AbortController();
  const { outcome, ms } = await sh(`trap '' TERM; echo go; ${endlessCommand}`, {
    signal: controller.signal,
    onOutput: () => {
      controller.abort();
      return new Promise(() => {});
    },
  });
  expect(outcome.end).toBe("cancelled");
  expect(ms).toBeLessThan(8_000);
  expectNoLeftovers();
});

test("starts nothing if it was cancelled before", async () => {
  const { outcome } = await sh("touch made", { signal: AbortSignal.abort() });
  expect(outcome.end).toBe("cancelled");
  expect(readdirSync(folder)).toEqual([]);
});

test("bounds memory on endless output and a slow reader", async () => {
  let most = 0;
  const { outcome } = await sh("yes", {
    timeoutMs: 700,
    onOutput: async (text) => {
      most = Math.max(most, text.length);
      await delay(5);
    },
  });
  expect(outcome.end).toBe("timed-out");
  expect(most).toBeLessThan(2 * 1024 * 1024);
  expectNoLeftovers();
});

test("sends a slow reader the whole output, in order", async () => {
  const { text } = await sh("seq 60000", { onOutput: () => delay(40) });
  expect(text).toBe(Array.from({ length: 60_000 }, (_, index) => `${index + 1}\n`).join(""));
});

test("sends 37 kB of short lines whole and in order", async () => {
  const { text } = await sh("for i in $(seq 400); do printf 'line %s %080d\\n' $i 0; done");
  expect(text).toBe(
    Array.from({ length: 400 }, (_, index) => `line ${index + 1} ${"0".repeat(80)}\n`).join(""),
  );
});

test("joins characters whose bytes arrive separately, and replaces invalid bytes", async () => {
  const { text } = await sh("printf '\\342\\202'; sleep 0.1; printf '\\254 \\377 end'");
  expect(text).toBe("€ \uFFFD end");
});

test("reads 50 MB quickly", async () => {
  let length = 0;
  const start = performance.now();
  const outcome = await processes.run({
    command: "head -c 52428800 /dev/zero | tr '\\0' x",
    cwd: folder,
    timeoutMs: 20_000,
    signal: new AbortController().signal,
    onOutput: async (text) => {
      length += text.length;
    },
  });
  expect({ outcome, length }).toEqual({ outcome: exited(0), length: 52_428_800 });
  expect(performance.now() - start).toBeLessThan(15_000);
});

test("names the missing folder", async () => {
  const outcome = await processes.run({
    command: "true",
    cwd: join(folder, "gone"),
    timeoutMs: 1_000,
    signal: new AbortController().signal,
    onOutput: async () => {},
  });
  expect(outcome).toEqual({
    end: "failed-to-start",
    exitCode: null,
    signalName: null,
    background: false,
    error: `The working directory ${join(folder, "gone")} is not a folder. Give one that exists.`,
  });
});

test("explains what to do with a command that is too long", async () => {
  const { outcome } = await sh(`: ${"x".repeat(3_000_000)}`);
  expect(outcome).toMatchObject({ end: "failed-to-start", error: expect.stringContaining("too long") });
});

test("a failing reader ends the command and gets the error", async () => {
  const gone = Object.assign(new Error("editor is gone"), { code: "EPIPE" });
  const failing = sh(`echo go; ${endlessCommand}`, { onOutput: () => Promise.reject(gone) });
  await expect(failing).rejects.toThrow("editor is gone");
  expectNoLeftovers();
});

test("servers are found only in absolute folders of the PATH", async () => {
  if (process.platform === "win32")
    copyFileSync(join(process.env["SystemRoot"] ?? "", "System32/hostname.exe"), join(folder, "server.exe"));
  else writeFileSync(join(folder, "server"), "#!/bin/sh\n", { mode: 0o755 });
  const servers = openPipedProcesses({
    env: () => ({ PATH: "." }),
    watchdog: new Watchdog(process.env["PATH"]),
  });
  const command = { command: "server", args: [], cwd: folder, env: {} };
  await expect(servers.start(command)).rejects.toThrow('program not found: "server"');
  const secret = { PATH: folder, KEY: "sec\0ret" };
  await expect(servers.start({ ...command, env: secret })).rejects.toThrow(
    /^"server" could not be started: its command line or environment contains a NUL character$/,
  );
  const there = await servers.start({ ...command, env: { PATH: folder } });
  expect(await there.exited).toEqual({ code: 0, signalName: null });
  await servers.endAll();
});

/** Runs without free file handles: `/proc` cannot be read then. */
const withoutFiles = `
  import { spawn } from "node:child_process";
  import { openSync } from "node:fs";
  import { endTree } from "${new URL("../../../src/workspace/process/process-tree.ts", import.meta.url).href}";
  const child = spawn("sleep", ["1000"], { detached: true, stdio: "ignore" });
  const exited = new Promise((resolve) => child.once("exit", (code, signal) => resolve(signal)));
  process.stdout.write("");
  for (let isOpen = true; isOpen; )
    try { openSync("/dev/null"); } catch { isOpen = false; }
  await endTree({ group: child.pid, mark: "none" });
  process.stdout.write(String(await exited));
`;

test.skipIf(lacksResourceLimits)("a group is ended even if processes cannot be listed", async () => {
  const script = ["--input-type=module", "--experimental-strip-types", "-e", withoutFiles];
  const { stdout } = await execa("/bin/sh", [
    "-c",
    'ulimit -n 200; exec "$@"',
    "sh",
    process.execPath,
    ...script,
  ]);
  expect(stdout).toBe("SIGTERM");
});

/** Guards a group without a free file handle, and another one later; then it is killed. */
const guardedWithoutFiles = `
  import { spawn } from "node:child_process";
  import { closeSync, openSync } from "node:fs";
  import { Watchdog } from "${new URL("../../../src/workspace/process/watchdog.ts", import.meta.url).href}";
  const groups = [1, 2].map(() => spawn("sleep", ["1000"], { detached: true, stdio: "ignore" }).pid);
  process.stdout.write(groups.join(" "));
  const watchdog = new Watchdog(process.env.PATH);
  const files = [];
  for (let isOpen = true; isOpen; )
    try { files.push(openSync("/dev/null")); } catch { isOpen = false; }
  watchdog.guard(groups[0]);
  for (const file of files) closeSync(file);
  watchdog.guard(groups[1]);
  setTimeout(() => process.kill(process.pid, "SIGKILL"), 100);
`;

test.skipIf(lacksResourceLimits)(
  "guards a process started without file handles as soon as one can be opened",
  async () => {
    const script = ["--input-type=module", "--experimental-strip-types", "-e", guardedWithoutFiles];
    const limited = ["-c", 'ulimit -n 200; exec "$@"', "sh", process.execPath, ...script];
    const { stdout, signal } = await execa("/bin/sh", limited, { reject: false });
    expect(signal).toBe("SIGKILL");
    const groups = stdout.split(" ").map(Number);
    expect(groups).toHaveLength(2);
    await expect.poll(() => findRunningGroups(groups), { timeout: 10_000 }).toEqual([]);
  },
);

/** Killed at the moment when its first command has started. */
const killedAtStart = `
  import childProcess from "node:child_process";
  import { openProcesses } from "${new URL("../../../src/workspace/process/process.ts", import.meta.url).href}";
  import { Watchdog } from "${new URL("../../../src/workspace/process/watchdog.ts", import.meta.url).href}";
  import { writeSync } from "node:fs";
  const { spawn } = childProcess;
  childProcess.spawn = (program, args, options) => {
    const child = spawn(program, args, options);
    if (args.includes("sleep 1000")) {
      writeSync(1, String(child.pid));
      process.kill(process.pid, "SIGKILL");
    }
    return child;
  };
  const env = () => ({ PATH: process.env.PATH });
  const command = { command: "sleep 1000", cwd: "/", signal: new AbortController().signal };
  await openProcesses({ env, watchdog: new Watchdog(process.env.PATH) }).run(command);
`;

test.runIf(onLinux)(
  "ends the first command also if the program is killed as soon as it has started",
  async () => {
    const script = ["--input-type=module", "--experimental-strip-types", "-e", killedAtStart];
    const { stdout, signal } = await execa(process.execPath, script, { reject: false });
    expect([signal, Number(stdout)]).toEqual(["SIGKILL", expect.any(Number)]);
    await expect.poll(() => findRunningGroups([Number(stdout)]), { timeout: 10_000 }).toEqual([]);
  },
);

/** Starts a marked process outside of the guarded groups; then it is killed. */
const killedWithMarked = `
  import { spawn } from "node:child_process";
  import { Watchdog } from "${new URL("../../../src/workspace/process/watchdog.ts", import.meta.url).href}";
  import { PROCESS_MARK } from "${new URL("../../../src/workspace/process/process-tree.ts", import.meta.url).href}";
  const mark = new Watchdog(process.argv[1]).newMark();
  const env = { PATH: process.env.PATH, [PROCESS_MARK]: mark };
  const { pid } = spawn("sleep", ["1000"], { env, detached: true, stdio: "ignore" });
  process.stdout.write(String(pid));
  setTimeout(() => process.kill(process.pid, "SIGKILL"), 100);
`;

/** The grep of some BusyBox builds compares fixed strings only up to the first NUL of a file. */
const grepUpToNul = `#!/bin/sh
PATH=\${PATH#*:}
case $1 in *F*) exit 1 ;; esac
exec grep "$@"
`;

test.runIf(onLinux)("a grep that compares fixed strings up to a NUL finds marked processes", async () => {
  writeFileSync(join(folder, "grep"), grepUpToNul, { mode: 0o755 });
  const script = ["--input-type=module", "--experimental-strip-types", "-e", killedWithMarked];
  const path = `${folder}:${process.env["PATH"]}`;
  const { stdout, signal } = await execa(process.execPath, [...script, path], { reject: false });
  expect([signal, Number(stdout)]).toEqual(["SIGKILL", expect.any(Number)]);
  await expect.poll(() => findRunningGroups([Number(stdout)]), { timeout: 10_000 }).toEqual([]);
});

test.runIf(onLinux)("processes that ignore TERM get KILL, even if listing processes is slow", async () => {
  const stubborn = spawn("/bin/sh", ["-c", "trap '' TERM; echo on; while :; do sleep 0.1; done"], {
    detached: true,
    stdio: ["ignore", "pipe", "ignore"],
  });
  await once(stubborn.stdout, "data");
  const exited = once(stubborn, "exit");
  const ended = endTree({ group: stubborn.pid, mark: "none" }, AbortSignal.abort());
  for (const until = performance.now() + 600; performance.now() < until;);
  await ended;
  expect(await exited).toEqual([null, "SIGKILL"]);
});

test("the end of the program ends running commands and rejects new ones", async () => {
  const running = sh(endlessCommand);
  if (!lacksProcessGroups) {
    const daemon = await sh("setsid sleep 1000 >/dev/null 2>&1 & echo started");
    expect(daemon.text).toBe("started\n");
  }
  await processes.endAll();
  expect((await running).outcome.end).toBe("cancelled");
  expect((await sh("true")).outcome.end).toBe("failed-to-start");
  expectNoLeftovers();
});
