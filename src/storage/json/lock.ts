import { createHash, randomUUID } from "node:crypto";
import { constants, readFileSync } from "node:fs";
import { type FileHandle, link, lstat, open, readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { z } from "zod";
import { codeOf, UserError } from "../../base/errors.ts";
import { sleep } from "../../base/async.ts";
import { withStoreErrors } from "./disk-error.ts";
import { inFolder, missing } from "./json-file.ts";

/**
 * Only one process, and only one holder in it, has the lease of a path at a time. `wasLeft` says that the holder
 * before ended without giving it back: it was killed, or crashed.
 */
export type Lease =
  | { status: "held"; wasLeft: boolean; release: () => Promise<void> }
  | { status: "busy"; pid?: number };

/** Far behind the content, so that others can still read the holder where locks are mandatory (Windows). */
const lockedByte = 2 ** 30;

/** A lease file without readable content belongs to nobody after this long. */
const staleMs = 1_000;

const attempts = 5;

const holderSchema = z.object({
  pid: z.number().int().positive(),
  /** Tells the process from a later one with the same number; null where the system does not say. */
  start: z.string().nullable(),
  /** Whether the kernel frees the lease when the process ends; if not, the content alone is the lease. */
  kernel: z.boolean(),
});
type Holder = z.infer<typeof holderSchema>;

/** The store in which leases have their files. */
interface LeaseStore {
  pathOf(key: readonly string[], fileEnding: string): string;
  quarantine(path: string, reason: string): Promise<void>;
}

/** Where the files are that lock what a data folder's processes share. */
export function lockFolderOf(dataFolder: string): string {
  return join(dataFolder, "storage", "lock");
}

/** How long to wait for another process that changes the same file. */
const updateWaitMs = 10_000;

/** Longest pause between two attempts to take a lease; the pauses differ, so that several callers do not keep step. */
const longestPauseMs = 20;

/**
 * Runs a change (read, modify, write) of a shared file while no other process and no other caller of this process
 * changes it. `acquire` takes the lease of that file. Rejects with a {@link UserError} when another holds it too long.
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

/** {@link updateShared} for a file outside of the store; its lease is in `lockFolder`. */
export function updateSharedFile<T>(path: string, lockFolder: string, change: () => Promise<T>): Promise<T> {
  const hash = createHash("sha256").update(path).digest("hex").slice(0, 24);
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

/** The lease of this name in a store. What stands in its place and is no file is moved aside. */
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

/** The lease of a file. The kernel frees it when its holder ends, however that happens. */
export async function acquireLease(path: string): Promise<Lease> {
  const found = await lstat(path).catch(missing);
  if (found && !found.isFile())
    throw new UserError(`${path} is not a regular file. Move it away, then try again.`);
  const tryLock = await loadTryLock();
  return tryLock ? acquireKernelLease(path, tryLock) : acquireFileLease(path);
}

/** For machines that the native lock was not built for: a lease whose holder is gone is taken over at once. */
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

/** The native lock, where there is one for this machine. */
async function loadTryLock(): Promise<TryLock | undefined> {
  try {
    const { tryLock } = await import("fs-native-extensions");
    return tryLock;
  } catch {
    // Not built for this system: the caller has another way.
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

/** Undefined when the file was removed or replaced meanwhile: a lock on it would be a lock on nothing. */
async function lockFile(path: string, file: FileHandle, tryLock: TryLock): Promise<Lease | undefined> {
  const isLocked = tryLock(file.fd, lockedByte, 1);
  const holder = toHolder(await readFile(path, "utf8").catch(() => ""));
  if (!isLocked) return { status: "busy", pid: holder?.pid };
  if (holder && !holder.kernel && isRunning(holder)) return { status: "busy", pid: holder.pid };
  if ((await stat(path).catch(missing))?.ino !== (await file.stat()).ino) return undefined;
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

/** The file appears with its content or not at all; false when there is one already. */
async function createHolderFile(path: string): Promise<boolean> {
  const draft = join(dirname(path), `.${basename(path)}.${process.pid}-${randomUUID()}.tmp`);
  try {
    await inFolder(dirname(path), () => writeFile(draft, toContent(false), { mode: 0o600, flag: "wx" }));
    await link(draft, path);
    return true;
  } catch (thrown) {
    if (codeOf(thrown) === "EEXIST") return false;
    throw thrown;
  } finally {
    await rm(draft, { force: true });
  }
}

/** Of several that want to take over, one gets to rename the file that all of them judged. */
async function removeStale(path: string, judged: string): Promise<void> {
  const aside = join(dirname(path), `.${basename(path)}.${process.pid}-${randomUUID()}.tmp`);
  try {
    await rename(path, aside);
    const isJudged = (await readFile(aside, "utf8")) === judged;
    if (!isJudged) await link(aside, path);
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
    // The schema is not built for a lease that nobody had yet.
    const value: unknown = JSON.parse(content);
    return holderSchema.parse(value);
  } catch {
    // Torn or foreign: nobody that could be asked.
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

/** When a process began, in the system's own unit; undefined where there is no /proc. */
function startOf(pid: number): string | undefined {
  try {
    const fields = readFileSync(`/proc/${pid}/stat`, "utf8");
    // The program's name may contain spaces and brackets; the start time is the 20th field behind it.
    return fields.slice(fields.lastIndexOf(")") + 2).split(" ")[19];
  } catch {
    return undefined;
  }
}
