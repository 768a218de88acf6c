import { isUtf8 } from "node:buffer";
import { randomUUID } from "node:crypto";
import { closeSync, constants, fstatSync, lstatSync, openSync, readSync } from "node:fs";
import type { Stats } from "node:fs";
import { lstat, open, rename, rm } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import type { Adapter } from "lowdb";
import { codeOf, isMissing, messageOf } from "../../base/errors.ts";
import { makeFolder } from "../../base/files/make-folder.ts";

/** No single message comes near this; a larger file is not ours and is not read into memory. */
const fileLimitBytes = 128 * 1024 * 1024;

/** A file that cannot be what the store wrote. The message is its reason, short. */
export class CorruptFile extends Error {
  override readonly name = "CorruptFile";
}

/** lowdb writes no falsy data, so the value stands in a box. */
export interface Box {
  value: unknown;
}

/**
 * A lowdb adapter for one file, written as temporary file, fsync, rename: readers see the old or the new content,
 * and a kill or a power cut in between leaves the old one. Temporary files are uniquely named in `temporaryFolder`,
 * which must be on the same disk.
 */
export class JsonFile implements Adapter<Box> {
  readonly #path: string;
  readonly #temporaryFolder: string;

  constructor(path: string, temporaryFolder: string) {
    this.#path = path;
    this.#temporaryFolder = temporaryFolder;
  }

  /** Null when there is no file. Throws {@link CorruptFile}. */
  async read(): Promise<Box | null> {
    return readJson(this.#path) ?? null;
  }

  async write(box: Box): Promise<void> {
    const text = JSON.stringify(box.value);
    await replaceFile(this.#path, text, this.#temporaryFolder);
  }
}

/** What a file held, and how the file stood then. */
export interface Held<T> {
  value: T;
  stat: Stats;
}

/**
 * The parsed content, undefined when there is no file. Synchronous on purpose: the store's files are small, and
 * four trips to the thread pool per file made loading a long session several times slower.
 */
export function readJson(path: string): Held<unknown> | undefined {
  const read = readText(path);
  if (read === undefined) return undefined;
  if (read.value.includes("\0")) throw new CorruptFile("contains NUL bytes");
  try {
    return { value: JSON.parse(read.value), stat: read.stat };
  } catch (thrown) {
    throw new CorruptFile(`not JSON: ${messageOf(thrown).slice(0, 100)}`);
  }
}

/** The text of a regular file, undefined when there is none. Links are not followed. Throws {@link CorruptFile}. */
export function readText(path: string): Held<string> | undefined {
  const fd = openToRead(path);
  if (fd === undefined) return undefined;
  try {
    const stat = fstatSync(fd);
    assertOurs(stat);
    const bytes = readBytes(fd, stat.size);
    if (!isUtf8(bytes)) throw new CorruptFile("not UTF-8");
    return { value: bytes.toString("utf8"), stat };
  } finally {
    closeSync(fd);
  }
}

/** Neither follows a link nor waits for who writes to a pipe. */
function openToRead(path: string): number | undefined {
  // Windows has no flag for it.
  if (constants.O_NOFOLLOW === undefined) assertOurs(lstatSync(path, { throwIfNoEntry: false }));
  try {
    return openSync(path, constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0));
  } catch (thrown) {
    if (isMissing(thrown)) return undefined;
    assertOurs(lstatSync(path, { throwIfNoEntry: false }));
    throw thrown;
  }
}

function assertOurs(stat: Stats | undefined): void {
  if (stat === undefined) return;
  if (stat.isSymbolicLink()) throw new CorruptFile("a symbolic link");
  if (stat.isDirectory()) throw new CorruptFile("a folder");
  if (!stat.isFile()) throw new CorruptFile("not a regular file");
  if (stat.size > fileLimitBytes) throw new CorruptFile(`too large (${stat.size} bytes)`);
}

/** Most files fit in it; what is read there counts until the next read. */
const page = Buffer.allocUnsafeSlow(16 * 1024);

function readBytes(fd: number, size: number): Buffer {
  const bytes = size <= page.length ? page : Buffer.allocUnsafeSlow(size);
  let end = 0;
  for (let got = -1; got !== 0 && end < size; end += got) got = readSync(fd, bytes, end, size - end, null);
  return bytes.subarray(0, end);
}

/** Writes the whole file or nothing, 0600, in folders 0700 that are made when missing. */
async function replaceFile(path: string, text: string, temporaryFolder: string): Promise<void> {
  const temporary = temporaryPath(path, temporaryFolder);
  try {
    await inFolder(temporaryFolder, () => writeDurably(temporary, text));
    await inFolder(dirname(path), () => rename(temporary, path));
  } catch (thrown) {
    await rm(temporary, { force: true });
    throw thrown;
  }
}

/** Unique across processes: two writers with one temporary name leave a corrupt file. */
export function temporaryPath(path: string, temporaryFolder: string): string {
  return join(temporaryFolder, `.${basename(path)}.${process.pid}-${randomUUID()}.tmp`);
}

async function writeDurably(path: string, text: string): Promise<void> {
  const file = await open(path, "wx", 0o600);
  try {
    await file.writeFile(text);
    await file.datasync();
  } finally {
    await file.close();
  }
}

/** Runs the work again after making the folder, when it was the folder that was missing. */
export async function inFolder<T>(folder: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (thrown) {
    if (codeOf(thrown) !== "ENOENT") throw thrown;
    await makeFolder(folder, 0o700);
    return work();
  }
}

/** The name that a damaged file gets when it is moved aside. */
export function asidePath(path: string, n: number): string {
  return `${path}.corrupt-${n}`;
}

/** Renames the file to `<name>.corrupt-<n>` beside it, and returns the new path; undefined when it is gone. */
export async function moveAside(path: string): Promise<string | undefined> {
  for (let n = 1; ; n++) {
    const aside = asidePath(path, n);
    if (await lstat(aside).catch(missing)) continue;
    try {
      await rename(path, aside);
      return aside;
    } catch (thrown) {
      if (codeOf(thrown) === "ENOENT") return undefined;
      throw thrown;
    }
  }
}

/** For `catch`: undefined when there is no such file, else the same error. */
export function missing(thrown: unknown): undefined {
  if (codeOf(thrown) !== "ENOENT") throw thrown;
}
