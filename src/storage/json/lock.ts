import { constants, readFileSync } from "node:fs";
import { type FileHandle, link, lstat, open, readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { z } from "zod";
import { randomUuid, sha256 } from "../../base/text/hash.ts";
import { codeOf, UserError } from "../../base/errors.ts";
import { sleep } from "../../base/async.ts";
import { withStoreErrors } from "./disk-error.ts";
import { inFolder, missing } from "./json-file.ts";

/**
 * An exclusive lease of a path, across and within processes. `wasLeft` means that the previous holder ended without
 * releasing it, by a kill or a crash.
 */
export type Lease =
  | { status: "held"; wasLeft: boolean; release: () => Promise<void> }
  | { status: "busy"; pid?: number };

/**
 * Offset of the locked byte, far beyond the content, so that others can read the holder where locks are mandatory
 * (Windows).
 */
const lockedByte = 2 ** 30;

/** A lease file with unreadable content is considered abandoned after this time. */
const staleMs = 1_000;

const attempts = 5;

const holderSchema = z.object({
  pid: z.number().int().positive(),
  /** Start time of the process, which detects a reused pid; null where the system does not report it. */
  start: z.string().nullable(),
  /** Whether the kernel releases the lease when the process ends. If not, only the content counts. */
  kernel: z.boolean(),
});
type Holder = z.infer<typeof holderSchema>;

interface LeaseStore {
  pathOf(key: readonly string[], fileEnding: string): string;
  quarantine(path: string, reason: string): Promise<void>;
}

/** Returns the folder of the lock files that the processes of a data folder share. */
export function lockFolderOf(dataFolder: string): string {
  return join(dataFolder, "storage", "lock");
}

/** Longest wait for another process that changes the same file. */
const updateWaitMs = 10_000;

/** Longest pause between attempts to acquire a lease. Pauses are random, so that callers do not stay in step. */
const longestPauseMs = 20;

/**
 * Runs a read-modify-write of a shared file while no other process or caller changes it. `acquire` acquires the
 * file's lease. Rejects with a {@link UserError} when another holder keeps it too long.
 */
export async function updateShared<T>(
  path: string,
  acquire: () => Promise<Lease>,
  change: () => Promise<T>,
): Promise<T> {
  const lease = await waitForLease(path, acquire);
  try {
    return await change();
  } finally {
    await lease.release();
  }
}

/** Like {@link updateShared}, for a file outside of the store; its lock file is in `lockFolder`. */
export function updateSharedFile<T>(path: string, lockFolder: string, change: () => Promise<T>): Promise<T> {
  const hash = sha256(path).slice(0, 24);
  const lockPath = join(lockFolder, `update-${hash}.lock`);
  return updateShared(path, () => acquireLease(lockPath), change);
}

async function waitForLease(path: string, acquire: () => Promise<Lease>) {
  const deadline = performance.now() + updateWaitMs;
  for (;;) {
    const lease = await acquire();
    if (lease.status === "held") return lease;
    if (performance.now() > deadline) {
      const holder = lease.pid === undefined ? "Another process" : `Process ${lease.pid}`;
      throw new UserError(`${holder} has been changing ${path} for too long. End it and try again.`);
    }
    await sleep(Math.random() * longestPauseMs);
  }
}

/** Acquires the lease of this name in a store. Anything at its path that is not a file is moved aside. */
export function acquireStoreLease(
  store: LeaseStore,
  name: string,
  acquire: (path: string) => Promise<Lease> = acquireLease,
): Promise<Lease> {
  const path = store.pathOf(["lock", name], ".lock");
  return withStoreErrors(path, async () => {
    const found = await lstat(path).catch(missing);
    if (found && !found.isFile()) await store.quarantine(path, "not a regular file");
    return acquire(path);
  });
}

/** Returns the process id of the lease's holder; undefined if nobody holds it. */
export async function findHolder(path: string): Promise<number | undefined> {
  const holder = toHolder(await readFile(path, "utf8").catch(() => ""));
  return holder !== undefined && isRunning(holder) ? holder.pid : undefined;
}

/** Acquires the lease of a file. The kernel releases it when its holder ends, even after a kill. */
export async function acquireLease(path: string): Promise<Lease> {
  const found = await lstat(path).catch(missing);
  if (found && !found.isFile())
    throw new UserError(`${path} is not a regular file. Move it away, then try again.`);
  const tryLock = await loadTryLock();
  return tryLock ? acquireKernelLease(path, tryLock) : acquireFileLease(path);
}

/**
 * Acquires a lease without the native lock, for machines it was not built for. Takes over the lease of a dead
 * process.
 */
export async function acquireFileLease(path: string): Promise<Lease> {
  let wasLeft = false;
  for (let attempt = 1; attempt <= attempts; attempt++) {
    if (await createHolderFile(path))
      return { status: "held", wasLeft, release: () => rm(path, { force: true }) };
    const content = await readFile(path, "utf8").catch(missing);
    if (content === undefined) continue;
    const holder = toHolder(content);
    if (holder && isRunning(holder)) return { status: "busy", pid: holder.pid };
    wasLeft ||= holder !== undefined;
    if (!holder && (await ageMs(path)) < staleMs) await sleep(staleMs / 2);
    else await removeStale(path, content);
  }
  return { status: "busy" };
}

type TryLock = (fd: number, offset: number, length: number) => boolean;

/** Whether the kernel can hold leases here. If not, lease files replace its locks. */
export async function hasKernelLocks(): Promise<boolean> {
  return (await loadTryLock()) !== undefined;
}

/** Loads the native lock; undefined where there is none for this machine. */
async function loadTryLock(): Promise<TryLock | undefined> {
  try {
    const { tryLock } = await import("fs-native-extensions");
    return tryLock;
  } catch {
    // Not built for this system: the caller falls back to a lease file.
    return undefined;
  }
}

async function acquireKernelLease(path: string, tryLock: TryLock): Promise<Lease> {
  for (let attempt = 1; attempt <= attempts; attempt++) {
    const file = await openLockFile(path);
    let lease: Lease | undefined;
    try {
      lease = await lockFile(path, file, tryLock);
    } finally {
      if (lease?.status !== "held") await file.close();
    }
    if (lease) return lease;
  }
  return { status: "busy" };
}

/** Returns undefined when the file was removed or replaced in the meantime: the lock would be on a deleted file. */
async function lockFile(path: string, file: FileHandle, tryLock: TryLock): Promise<Lease | undefined> {
  const isLocked = tryLock(file.fd, lockedByte, 1);
  const holder = toHolder(await readFile(path, "utf8").catch(() => ""));
  if (!isLocked) return { status: "busy", pid: holder?.pid };
  if (holder && !holder.kernel && isRunning(holder)) return { status: "busy", pid: holder.pid };
  // Numbers of files on NTFS are exact only as bigints.
  const found = await stat(path, { bigint: true }).catch(missing);
  if (found?.ino !== (await file.stat({ bigint: true })).ino) return undefined;
  await file.truncate(0);
  await file.write(toContent(true), 0);
  return { status: "held", wasLeft: holder !== undefined, release: () => releaseKernelLease(file) };
}

async function releaseKernelLease(file: FileHandle): Promise<void> {
  try {
    await file.truncate(0);
  } finally {
    await file.close();
  }
}

function openLockFile(path: string): Promise<FileHandle> {
  const flags =
    constants.O_RDWR | constants.O_CREAT | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0);
  return inFolder(dirname(path), () => open(path, flags, 0o600));
}

/** Creates the lease file atomically with its content; false when there is one already. */
async function createHolderFile(path: string): Promise<boolean> {
  const draft = join(dirname(path), `.${basename(path)}.${process.pid}-${randomUuid()}.tmp`);
  try {
    await inFolder(dirname(path), () => writeFile(draft, toContent(false), { mode: 0o600, flag: "wx" }));
    return await linkUnlessExists(draft, path);
  } finally {
    await rm(draft, { force: true });
  }
}

async function linkUnlessExists(draft: string, path: string): Promise<boolean> {
  try {
    await link(draft, path);
    return true;
  } catch (thrown) {
    if (codeOf(thrown) === "EEXIST") return false;
    throw thrown;
  }
}

/** Removes a stale lease file. When several processes try, only one succeeds in renaming it. */
async function removeStale(path: string, staleContent: string): Promise<void> {
  const aside = join(dirname(path), `.${basename(path)}.${process.pid}-${randomUuid()}.tmp`);
  try {
    await rename(path, aside);
    const isUnchanged = (await readFile(aside, "utf8")) === staleContent;
    if (!isUnchanged) await link(aside, path);
  } catch (thrown) {
    if (codeOf(thrown) !== "ENOENT" && codeOf(thrown) !== "EEXIST") throw thrown;
  } finally {
    await rm(aside, { force: true });
  }
}

async function ageMs(path: string): Promise<number> {
  const found = await stat(path).catch(missing);
  return found ? Date.now() - found.mtimeMs : 0;
}

function toContent(kernel: boolean): string {
  const holder: Holder = { pid: process.pid, start: startOf(process.pid) ?? null, kernel };
  return JSON.stringify(holder);
}

function toHolder(content: string): Holder | undefined {
  try {
    // Parsed first, so that the schema is not built for an empty lease file.
    const value: unknown = JSON.parse(content);
    return holderSchema.parse(value);
  } catch {
    // Torn or foreign: there is no holder to check.
    return undefined;
  }
}

function isRunning(holder: Holder): boolean {
  try {
    process.kill(holder.pid, 0);
  } catch (thrown) {
    if (codeOf(thrown) !== "EPERM") return false;
  }
  const start = startOf(holder.pid);
  return start === undefined || holder.start === null || start === holder.start;
}

/** Returns the start time of a process, in the system's unit; undefined where there is no /proc. */
function startOf(pid: number): string | undefined {
  try {
    const fields = readFileSync(`/proc/${pid}/stat`, "utf8");
    // The program's name may contain spaces and brackets; the start time is the 20th field after it.
    return fields.slice(fields.lastIndexOf(")") + 2).split(" ")[19];
  } catch {
    return undefined;
  }
}
