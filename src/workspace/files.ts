import { createHash, randomUUID } from "node:crypto";
import { constants } from "node:fs";
import type { Stats } from "node:fs";
import { access, open, rename, rm, stat, unlink } from "node:fs/promises";
import type { FileHandle } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { KeyedSerial } from "../base/async.ts";
import { codeOf, UserError } from "../base/errors.ts";
import { assertIsAt, withFolder } from "./held-folder.ts";

/**
 * The disk as tools see it. All paths are absolute real paths; where one leads elsewhere by now, because a link was put
 * on the way, nothing is read or written.
 */
export interface Files {
  /**
   * Bytes of a regular file with their SHA-256 (hex). Throws system errors such as ENOENT, and a
   * {@link UserError} for what is not a regular file or larger than {@link readLimitBytes}.
   */
  read(path: string): Promise<{ bytes: Buffer; hash: string }>;
  /**
   * Replaces or creates a file atomically, keeping its mode; makes missing folders.
   * `expected` is the hash it must still have, null that it must not exist; otherwise {@link StaleFile} is thrown.
   * `newMode` are the permission bits of a file that is made. Answers what stands there afterwards: with `bytes` where
   * that is not what was given, because an editor formats.
   */
  write(
    path: string,
    bytes: Uint8Array,
    expected: string | null,
    newMode?: number,
  ): Promise<{ hash: string; bytes?: Buffer }>;
  remove(path: string, expected: string): Promise<void>;
  /** Runs the task when no other task on any of these files runs. */
  lock<T>(paths: readonly string[], task: () => Promise<T>): Promise<T>;
}

export class StaleFile extends Error {
  override readonly name = "StaleFile";
}

/** No more of one file is held in memory at once. */
export const readLimitBytes = 50 * 1024 * 1024;

/** Without it, opening a FIFO that nobody writes to would wait for ever. Windows has neither. */
export const openForReading = constants.O_RDONLY | (constants.O_NONBLOCK ?? 0);

export function openFiles(): Files {
  return new DiskFiles();
}

class DiskFiles implements Files {
  readonly #locks = new KeyedSerial();

  async read(path: string): Promise<{ bytes: Buffer; hash: string }> {
    return withFileAt(path, async (file) => {
      assertReadable(path, await file.stat());
      const bytes = await file.readFile();
      return { bytes, hash: sha256(bytes) };
    });
  }

  async write(
    path: string,
    bytes: Uint8Array,
    expected: string | null,
    newMode = defaultMode,
  ): Promise<{ hash: string }> {
    await inItsFolder(path, expected, async (place) => {
      await replaceFile(place, bytes, expected === null ? newMode : await writableStat(place));
    });
    return { hash: sha256(bytes) };
  }

  async remove(path: string, expected: string): Promise<void> {
    await inItsFolder(path, expected, unlink);
  }

  lock<T>(paths: readonly string[], task: () => Promise<T>): Promise<T> {
    // One order for all, so that two tasks never wait for each other.
    const [first, ...rest] = [...new Set(paths)].sort();
    if (first === undefined) return task();
    return this.#locks.run(first, () => this.lock(rest, task));
  }
}

/** SHA-256 in hex, as snapshots and the stale check name contents. */
export function sha256(bytes: Uint8Array): string {
  return createHash("sha256").update(bytes).digest("hex");
}

/** Opens the file, and closes it whatever the task does. `flags` are those of `open(2)`. */
export async function withOpenFile<T>(
  path: string,
  flags: number,
  task: (file: FileHandle) => Promise<T>,
  mode?: number,
): Promise<T> {
  const file = await open(path, flags, mode);
  try {
    return await task(file);
  } finally {
    await file.close();
  }
}

/** Opens the file of an absolute real path for reading; throws {@link UserError} where the path leads elsewhere by now. */
export function withFileAt<T>(path: string, task: (file: FileHandle) => Promise<T>): Promise<T> {
  return withOpenFile(path, openForReading, (file) => {
    assertIsAt(file, path);
    return task(file);
  });
}

/** Puts the bytes in place at once or not at all: a temporary file beside it, flushed to the disk, then renamed. */
export async function writeAtomically(path: string, bytes: Uint8Array, mode: number): Promise<void> {
  await replaceThrough(path, mode, (file) => file.writeFile(bytes));
}

const defaultMode = 0o666;

/** `old` is what is known of the file that is replaced, or the mode of a new one. */
async function replaceFile(path: string, bytes: Uint8Array, old: Stats | number): Promise<void> {
  await replaceThrough(path, typeof old === "number" ? old : old.mode, async (file) => {
    await file.writeFile(bytes);
    if (typeof old !== "number") await keepOwnerAndMode(file, old);
  });
}

async function replaceThrough(path: string, mode: number, fill: (file: FileHandle) => Promise<void>) {
  const temporary = join(dirname(path), `.${randomUUID()}.tmp`);
  try {
    await fillAndSync(temporary, mode, fill);
    await rename(temporary, path);
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
}

async function fillAndSync(path: string, mode: number, fill: (file: FileHandle) => Promise<void>) {
  const make = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL;
  await withOpenFile(
    path,
    make,
    async (file) => {
      await fill(file);
      await file.sync();
    },
    mode & 0o777,
  );
}

async function keepOwnerAndMode(file: FileHandle, old: Stats): Promise<void> {
  const fresh = await file.stat();
  if (fresh.uid !== old.uid || fresh.gid !== old.gid) await giveBack(file, old);
  await file.chmod(old.mode & 0o7777);
}

/** Only root may give files away; for others the file becomes theirs, as in any editor that saves by renaming. */
async function giveBack(file: FileHandle, old: Stats): Promise<void> {
  try {
    await file.chown(old.uid, old.gid);
  } catch (error) {
    if (codeOf(error) !== "EPERM") throw error;
  }
}

/** A rename would replace even a file that its owner made read-only. */
async function writableStat(path: string): Promise<Stats> {
  await access(path, constants.W_OK);
  return stat(path);
}

/** Runs the task on a path to the file that no link on the way can lead elsewhere, where it is as expected. */
async function inItsFolder(
  path: string,
  expected: string | null,
  task: (place: string) => Promise<void>,
): Promise<void> {
  try {
    await withFolder(dirname(path), { make: expected === null }, async (folder) => {
      const place = join(folder, basename(path));
      assertExpected(path, await hashOrMissing(place), expected);
      await task(place);
    });
  } catch (error) {
    if (codeOf(error) === "ELOOP") throw new UserError(`${path} is a link by now. Use the path it leads to.`);
    if (expected !== null && codeOf(error) === "ENOENT") assertExpected(path, null, expected);
    throw error;
  }
}

function assertExpected(path: string, hash: string | null, expected: string | null): void {
  if (hash === expected) return;
  if (expected === null) throw new StaleFile(`${path} exists already.`);
  throw new StaleFile(hash === null ? `${path} no longer exists.` : `${path} was changed meanwhile.`);
}

async function hashOrMissing(path: string): Promise<string | null> {
  try {
    return await hashOfFile(path);
  } catch (error) {
    if (codeOf(error) === "ENOENT") return null;
    throw error;
  }
}

async function hashOfFile(path: string): Promise<string> {
  return withOpenFile(path, openForReading | (constants.O_NOFOLLOW ?? 0), async (file) => {
    if (!(await file.stat()).isFile()) throw new UserError(`${path} is not a regular file.`);
    const hash = createHash("sha256");
    for await (const chunk of file.readableWebStream({ autoClose: false })) hash.update(chunk);
    return hash.digest("hex");
  });
}

function assertReadable(path: string, found: Stats): void {
  if (!found.isFile()) throw new UserError(`${path} is not a regular file.`);
  if (found.size <= readLimitBytes) return;
  throw new UserError(
    `${path} has ${found.size} bytes; files of up to ${readLimitBytes} bytes are read at once.`,
  );
}
