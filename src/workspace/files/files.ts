import { createHash, randomUUID } from "node:crypto";
import { constants } from "node:fs";
import { open, rename, rm } from "node:fs/promises";
import type { FileHandle } from "node:fs/promises";
import { dirname, join } from "node:path";
import { assertIsAt } from "./held-folder.ts";

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
   * Replaces or creates a file atomically, keeping its mode; makes missing folders. Call it under the file's lock.
   * `expected` is the hash it must still have, null that it must not exist; otherwise {@link StaleFile} is thrown, also
   * for a save that comes at the last moment, which is put back.
   * `newMode` are the permission bits of a file that is made. Answers what stands there afterwards: with `bytes` where
   * that is not what was given, because an editor formats.
   */
  write(
    path: string,
    bytes: Uint8Array,
    expected: string | null,
    newMode?: number,
  ): Promise<{ hash: string; bytes?: Buffer }>;
  /** Removes a file that still has this hash, under its lock; otherwise {@link StaleFile} is thrown. */
  remove(path: string, expected: string): Promise<void>;
  /**
   * Runs the task when no other task on any of these files runs, here or in another process of the program. Throws
   * {@link UserError} where another process holds one of them for too long.
   */
  lock<T>(paths: readonly string[], task: () => Promise<T>): Promise<T>;
}

export class StaleFile extends Error {
  override readonly name = "StaleFile";
}

/** Maximum bytes of one file in memory. */
export const readLimitBytes = 50 * 1024 * 1024;

/** Without it, opening a FIFO that nobody writes to would wait for ever. Windows has neither. */
export const openForReading = constants.O_RDONLY | (constants.O_NONBLOCK ?? 0);

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

/** Opens the file of an absolute real path for reading; throws {@link UserError} if the path now leads elsewhere. */
export function withFileAt<T>(path: string, task: (file: FileHandle) => Promise<T>): Promise<T> {
  return withOpenFile(path, openForReading, (file) => {
    assertIsAt(file, path);
    return task(file);
  });
}

/** Writes atomically: a temporary file in the same folder, flushed to the disk, then renamed. */
export async function writeAtomically(path: string, bytes: Uint8Array, mode: number): Promise<void> {
  await replaceThrough(path, mode, (file) => file.writeFile(bytes));
}

async function replaceThrough(path: string, mode: number, fill: (file: FileHandle) => Promise<void>) {
  const temporary = join(dirname(path), temporaryName());
  try {
    await fillAndSync(temporary, mode, fill);
    await rename(temporary, path);
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
}

/** Of a file beside the one that is written. */
export const temporaryName = (): string => `.${randomUUID()}.tmp`;

/** Makes a file with what the task writes into it, flushed to the disk. */
export async function fillAndSync(path: string, mode: number, fill: (file: FileHandle) => Promise<void>) {
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
