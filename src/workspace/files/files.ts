import { constants } from "node:fs";
import { open, rename, rm, writeFile } from "node:fs/promises";
import type { FileHandle } from "node:fs/promises";
import { dirname, join } from "node:path";
import { randomUuid } from "../../base/text/hash.ts";
import { retryInUse } from "../../base/files/retry-in-use.ts";
import { assertIsAt } from "./held-folder.ts";

/**
 * File access for tools. All paths are absolute real paths. If a path leads elsewhere by now, because a link
 * was created on the way, nothing is read or written.
 */
export interface Files {
  /**
   * Reads a regular file with its SHA-256 (hex). Throws system errors such as ENOENT, and a {@link UserError}
   * for other kinds of files or more than {@link readLimitBytes}.
   */
  read(path: string): Promise<{ bytes: Buffer; hash: string }>;
  /**
   * Replaces or creates a file atomically. Keeps its mode and creates missing folders. Call it under the
   * file's lock.
   * - `expected`: the hash the file must still have, or null if it must not exist. Otherwise throws {@link
   * StaleFile}, also for a concurrent save, which is restored.
   * - `newMode`: permission bits of a new file.
   * - Returns the stored content: with `bytes` if it differs, because an editor formats.
   */
  write(
    path: string,
    bytes: Uint8Array,
    expected: string | null,
    newMode?: number,
  ): Promise<{ hash: string; bytes?: Buffer }>;
  /** Removes a file that still has this hash, under its lock; otherwise throws {@link StaleFile}. */
  remove(path: string, expected: string): Promise<void>;
  /**
   * Runs the task when no other task, here or in another process, uses any of these files. Throws {@link
   * UserError} if another process locks one of them for too long.
   */
  lock<T>(paths: readonly string[], task: () => Promise<T>): Promise<T>;
}

export class StaleFile extends Error {
  override readonly name = "StaleFile";
}

/** Maximum size of a file in memory. */
export const readLimitBytes = 50 * 1024 * 1024;

/** O_NONBLOCK, because opening a FIFO without a writer would block. Not available on Windows. */
export const openForReading = constants.O_RDONLY | (constants.O_NONBLOCK ?? 0);

/** Opens a file for the task and always closes it. `flags` are those of `open(2)`. */
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

/** Opens the file at a real path for reading. Throws {@link UserError} if the path now leads elsewhere. */
export function withFileAt<T>(path: string, task: (file: FileHandle) => Promise<T>): Promise<T> {
  return withOpenFile(path, openForReading, (file) => {
    assertIsAt(file, path);
    return task(file);
  });
}

/** Writes atomically: a temporary file in the same folder, flushed to the disk if durable, then renamed. */
export async function writeAtomically(
  path: string,
  bytes: Uint8Array,
  mode: number,
  isDurable = true,
): Promise<void> {
  const temporary = join(dirname(path), temporaryName());
  try {
    if (isDurable) await fillAndSync(temporary, mode, (file) => file.writeFile(bytes));
    else await writeFile(temporary, bytes, { mode, flag: "wx" });
    await retryInUse(() => rename(temporary, path));
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
}

/** Name of a temporary file in the same folder. */
export const temporaryName = (): string => `.${randomUuid()}.tmp`;

/** Creates a file, runs the task to write it, and flushes it to the disk. */
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
