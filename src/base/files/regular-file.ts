import { closeSync, constants, fstatSync, openSync } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { UserError } from "../errors.ts";

/** With this flag, opening a pipe does not wait for the other end. Windows does not have it. */
const nonBlocking = constants.O_NONBLOCK ?? 0;

/**
 * Opens a file, following links.
 * - Rejects with a {@link UserError} for a pipe, a device or a folder, without waiting for its other end.
 * - Rejects with the system error otherwise.
 */
export async function openRegularFile(path: string, flags = constants.O_RDONLY): Promise<FileHandle> {
  const file = await open(path, flags | nonBlocking);
  try {
    if (!(await file.stat()).isFile()) throw notRegular(path);
    return file;
  } catch (error) {
    await file.close();
    throw error;
  }
}

/** Synchronous {@link openRegularFile}. */
export function openRegularFileSync(path: string, flags: number, mode: number): number {
  const file = openSync(path, flags | nonBlocking, mode);
  try {
    if (!fstatSync(file).isFile()) throw notRegular(path);
    return file;
  } catch (error) {
    closeSync(file);
    throw error;
  }
}

/** Reads a whole file. Rejects as {@link openRegularFile} does. */
export async function readRegularFile(path: string): Promise<Buffer> {
  const file = await openRegularFile(path);
  try {
    return await file.readFile();
  } finally {
    await file.close();
  }
}

function notRegular(path: string): UserError {
  return new UserError(`${path} is not a regular file. Move it away, then try again.`);
}
