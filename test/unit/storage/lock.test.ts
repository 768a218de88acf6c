import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { acquireFileLease, acquireLease, type Lease } from "../../../src/storage/json/lock.ts";

let root: string;
let path: string;
let holders: ChildProcess[];

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "fairlead-lock-"));
  path = join(root, "lock", "a.lock");
  holders = [];
});
afterEach(() => {
  for (const holder of holders) holder.kill("SIGKILL");
  rmSync(root, { recursive: true, force: true });
});

async function startHolder(kind: string): Promise<{ holder: ChildProcess; answer: string }> {
  const holder = spawn(
    process.execPath,
    [join(import.meta.dirname, "../../crash/programs/hold-lease.ts"), path, kind],
    {
      stdio: ["pipe", "pipe", "inherit"],
    },
  );
  holders.push(holder);
  const [chunk]: unknown[] = await once(holder.stdout, "data");
  return { holder, answer: String(chunk).trim() };
}

async function kill(holder: ChildProcess): Promise<void> {
  const exited = once(holder, "exit");
  holder.kill("SIGKILL");
  await exited;
}

async function release(lease: Lease): Promise<void> {
  if (lease.status !== "held") throw new Error("the lease is not held");
  await lease.release();
}

describe.each([
  ["kernel", acquireLease],
  ["file", acquireFileLease],
] as const)("a %s lease", (kind, acquire) => {
  test("has one holder, in this process too", async () => {
    const first = await acquire(path);
    expect(first.status).toBe("held");
    expect(await acquire(path)).toEqual({ status: "busy", pid: process.pid });
    await release(first);
    const second = await acquire(path);
    expect(second.status).toBe("held");
    await release(second);
  });

  test("names the process that has it", async () => {
    const { holder, answer } = await startHolder(kind);
    expect(answer).toBe("held");
    expect(await acquire(path)).toEqual({ status: "busy", pid: holder.pid });
  });

  test("is free at once when its holder was killed", async () => {
    const { holder } = await startHolder(kind);
    await kill(holder);
    const started = performance.now();
    const lease = await acquire(path);
    expect(lease.status).toBe("held");
    expect(performance.now() - started).toBeLessThan(2_000);
    await release(lease);
  });

  // Other systems do not tell when a process started.
  test.runIf(process.platform === "linux")(
    "is free when the process number now belongs to another process",
    async () => {
      await release(await acquire(path));
      writeFileSync(path, JSON.stringify({ pid: process.pid, start: "1", kernel: false }));
      const lease = await acquire(path);
      expect(lease.status).toBe("held");
      await release(lease);
    },
  );

  test("is free if its file is empty", async () => {
    await release(await acquire(path));
    writeFileSync(path, "{");
    const started = performance.now();
    const lease = await acquire(path);
    expect(lease.status).toBe("held");
    expect(performance.now() - started).toBeLessThan(2_000);
    await release(lease);
  });

  test("is refused with the system's error if its folder cannot be made", async () => {
    symlinkSync(join(root, "nowhere"), join(root, "lock"), "junction");
    await expect(acquire(path)).rejects.toThrow("EEXIST");
  });

  test("goes to one of many parallel requests", async () => {
    const leases = await Promise.all(Array.from({ length: 8 }, () => acquire(path)));
    expect(leases.filter((lease) => lease.status === "held")).toHaveLength(1);
    for (const lease of leases) if (lease.status === "held") await lease.release();
  });
});

test("the two kinds of lease respect each other", async () => {
  const kernel = await acquireLease(path);
  expect(await acquireFileLease(path)).toEqual({ status: "busy", pid: process.pid });
  await release(kernel);
  rmSync(path);
  const file = await acquireFileLease(path);
  expect(await acquireLease(path)).toEqual({ status: "busy", pid: process.pid });
  await release(file);
  expect(existsSync(path)).toBe(false);
});
