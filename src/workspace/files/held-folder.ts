import { constants, readlinkSync } from "node:fs";
import { open } from "node:fs/promises";
import type { FileHandle } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { codeOf, UserError } from "../../base/errors.ts";
import { makeFolder } from "../../base/files/make-folder.ts";
import { realPathSync } from "./real-path.ts";

/** Linux's O_PATH, which Node does not define. It also opens folders that cannot be listed. */
const onlyPath = 0o10000000;
const folderFlags = constants.O_RDONLY | (constants.O_DIRECTORY ?? 0) | onlyPath;

/** Linux folder of open files; paths through it reach an open folder, even if its path has changed. */
const openFiles = "/proc/self/fd";

/**
 * Runs the task with a path that reaches only this folder, even if links are created meanwhile. Systems
 * without /proc use the folder's own path, and check before and after making folders where it leads.
 * - `path` is an absolute real path; `make` creates missing folders.
 * - Throws system errors such as ENOENT, and a {@link UserError} if the path leads elsewhere by now.
 */
export async function withFolder<T>(
  path: string,
  { make, platform = process.platform }: { make: boolean; platform?: NodeJS.Platform },
  task: (folder: string) => Promise<T>,
): Promise<T> {
  if (platform !== "linux") {
    assertLeadsTo(realPathSync(path), path);
    if (make) await makeFolder(path);
    assertLeadsTo(realPathSync(path), path);
    return task(path);
  }
  return runAndClose(await (make ? openOrCreate(path) : openFolder(path, path)), path, task);
}

/** Closes the folder after the task. Errors with the folder's internal path are reported with its real path. */
async function runAndClose<T>(
  folder: FileHandle,
  path: string,
  task: (folder: string) => Promise<T>,
): Promise<T> {
  const heldPath = joinThrough(folder, path);
  try {
    return await task(heldPath);
  } catch (error) {
    if (error instanceof Error) error.message = error.message.replaceAll(`${heldPath}/`, join(path, "/"));
    throw error;
  } finally {
    await folder.close();
  }
}

/** Throws {@link UserError} unless the open file is, or was when opened, the one at this real path. */
export function assertIsAt(file: FileHandle, path: string): void {
  const actualPath = getOpenPath(file) ?? realPathSync(path);
  if (actualPath !== `${path} (deleted)` && !isReplaced(actualPath, path)) assertLeadsTo(actualPath, path);
}

/** Whether a concurrent write has renamed the file to a temporary name in the same folder. */
function isReplaced(actualPath: string, path: string): boolean {
  return (
    dirname(actualPath) === dirname(path) &&
    /^\.[\da-f-]{36}\.tmp(?: \(deleted\))?$/.test(basename(actualPath))
  );
}

/** On a case-insensitive file system the names may differ in case. */
function assertLeadsTo(actualPath: string, path: string): void {
  if (actualPath === path || actualPath.toLowerCase() === path.toLowerCase()) return;
  throw new UserError(`${path} now leads to ${actualPath}. Use that path instead.`);
}

async function openOrCreate(path: string): Promise<FileHandle> {
  try {
    return await openFolder(path, path);
  } catch (error) {
    if (codeOf(error) !== "ENOENT" || dirname(path) === path) throw error;
  }
  return runAndClose(await openOrCreate(dirname(path)), dirname(path), async (above) => {
    const heldPath = join(above, basename(path));
    await makeFolder(heldPath);
    return openFolder(heldPath, path);
  });
}

async function openFolder(heldPath: string, path: string): Promise<FileHandle> {
  const folder = await open(heldPath, folderFlags);
  try {
    assertIsAt(folder, path);
    return folder;
  } catch (error) {
    await folder.close();
    throw error;
  }
}

/** Undefined if the system does not provide it. */
function getOpenPath(file: FileHandle): string | undefined {
  if (process.platform !== "linux") return undefined;
  try {
    return readlinkSync(`${openFiles}/${file.fd}`);
  } catch (error) {
    if (codeOf(error) === undefined) throw error;
    return undefined;
  }
}

const joinThrough = (folder: FileHandle, path: string): string =>
  getOpenPath(folder) === undefined ? path : `${openFiles}/${folder.fd}`;
