import { constants, readlinkSync } from "node:fs";
import { open } from "node:fs/promises";
import type { FileHandle } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { codeOf, UserError } from "../../base/errors.ts";
import { makeFolder } from "../../base/files/make-folder.ts";
import { realPathSync } from "./real-path.ts";

/** Linux's O_PATH, which Node does not name: a folder is held that may not be listed too. */
const onlyPath = 0o10000000;
const folderFlags = constants.O_RDONLY | (constants.O_DIRECTORY ?? 0) | onlyPath;

/** Where the system shows by name what a process has open, and lets it go on from there. */
const openFiles = "/proc/self/fd";

/**
 * Runs the task with a path to the folder by which nothing but that folder is reached, whatever links are put on the
 * way meanwhile; where the system cannot hold a folder, with the folder's own. `path` is an absolute real path; with
 * `make`, folders that are missing are made. Throws system errors such as ENOENT, and a {@link UserError} where the
 * path leads elsewhere by now.
 */
export async function withFolder<T>(
  path: string,
  { make }: { make: boolean },
  task: (folder: string) => Promise<T>,
): Promise<T> {
  if (process.platform !== "linux") {
    if (make) await makeFolder(path);
    assertLeadsTo(realPathSync(path), path);
    return task(path);
  }
  return within(await (make ? openOrMake(path) : openFolder(path, path)), path, task);
}

/** Closes the folder behind the task. What the task says of the way into it is told of its path. */
async function within<T>(folder: FileHandle, path: string, task: (folder: string) => Promise<T>): Promise<T> {
  const way = through(folder, path);
  try {
    return await task(way);
  } catch (error) {
    if (error instanceof Error) error.message = error.message.replaceAll(`${way}/`, join(path, "/"));
    throw error;
  } finally {
    await folder.close();
  }
}

/** Throws {@link UserError} unless the open file is, or was when opened, the one at this absolute real path. */
export function assertIsAt(file: FileHandle, path: string): void {
  const place = placeOf(file) ?? realPathSync(path);
  if (place !== `${path} (deleted)` && !isReplaced(place, path)) assertLeadsTo(place, path);
}

/** Whether a write that came since has given the file a temporary name beside its own. */
function isReplaced(place: string, path: string): boolean {
  return dirname(place) === dirname(path) && /^\.[\da-f-]{36}\.tmp(?: \(deleted\))?$/.test(basename(place));
}

/** What a file system that does not tell case apart calls a file may differ in that. */
function assertLeadsTo(place: string, path: string): void {
  if (place === path || place.toLowerCase() === path.toLowerCase()) return;
  throw new UserError(`${path} now leads to ${place}. Use that path instead.`);
}

async function openOrMake(path: string): Promise<FileHandle> {
  try {
    return await openFolder(path, path);
  } catch (error) {
    if (codeOf(error) !== "ENOENT" || dirname(path) === path) throw error;
  }
  return within(await openOrMake(dirname(path)), dirname(path), async (above) => {
    const place = join(above, basename(path));
    await makeFolder(place);
    return openFolder(place, path);
  });
}

async function openFolder(place: string, path: string): Promise<FileHandle> {
  const folder = await open(place, folderFlags);
  try {
    assertIsAt(folder, path);
    return folder;
  } catch (error) {
    await folder.close();
    throw error;
  }
}

/** Undefined if the system does not provide it. */
function placeOf(file: FileHandle): string | undefined {
  if (process.platform !== "linux") return undefined;
  try {
    return readlinkSync(`${openFiles}/${file.fd}`);
  } catch (error) {
    if (codeOf(error) === undefined) throw error;
    return undefined;
  }
}

const through = (folder: FileHandle, path: string): string =>
  placeOf(folder) === undefined ? path : `${openFiles}/${folder.fd}`;
