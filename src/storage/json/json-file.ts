import { isUtf8 } from "node:buffer";
import { closeSync, constants, fstatSync, lstatSync, openSync, readSync } from "node:fs";
import type { Stats } from "node:fs";
import { lstat, open, rename, rm } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import type { Adapter } from "lowdb";
import { randomUuid } from "../../base/text/hash.ts";
import { codeOf, isMissing, messageOf } from "../../base/errors.ts";
import { makeFolder } from "../../base/files/make-folder.ts";
import { retryInUse } from "../../base/files/retry-in-use.ts";

/** No message is nearly this large. A larger file was not written by the store and is not read into memory. */
const fileLimitBytes = 128 * 1024 * 1024;

/** A file that the store cannot have written. The message is a short reason. */
export class CorruptFile extends Error {
  override readonly name = "CorruptFile";
}

/** Wraps a value, because lowdb does not write falsy data. */
export interface Box {
  value: unknown;
}

/**
 * A lowdb adapter for one file, written as temporary file, fsync, rename: readers see the old or the new content,
 * and a kill or power loss leaves the old one. `temporaryFolder` must be on the same disk.
 */
export class JsonFile implements Adapter<Box> {
  readonly #path: string;
  readonly #temporaryFolder: string;

  constructor(path: string, temporaryFolder: string) {
    this.#path = path;
    this.#temporaryFolder = temporaryFolder;
  }

  /** Returns null when there is no file. Throws {@link CorruptFile}. */
  async read(): Promise<Box | null> {
    return readJson(this.#path) ?? null;
  }

  async write(box: Box): Promise<void> {
    const text = JSON.stringify(box.value);
    await replaceFile(this.#path, text, this.#temporaryFolder);
  }
}

/** A file's content with its stat at the time of reading. */
export interface FileContent<T> {
  value: T;
  stat: Stats;
}

/**
 * Returns the parsed content; undefined when there is no file. Throws {@link CorruptFile}.
 * Synchronous on purpose: the store's files are small, and four thread-pool calls per file made loading a long
 * session several times slower.
 */
export function readJson(path: string): FileContent<unknown> | undefined {
  const read = readText(path);
  if (read === undefined) return undefined;
  if (read.value.includes("\0")) throw new CorruptFile("contains NUL bytes");
  try {
    return { value: JSON.parse(read.value), stat: read.stat };
  } catch (thrown) {
    throw new CorruptFile(`not JSON: ${messageOf(thrown).slice(0, 100)}`);
  }
}

/**
 * Returns the text of a regular file; undefined when there is none. Does not follow links. Throws {@link
 * CorruptFile}.
 */
export function readText(path: string): FileContent<string> | undefined {
  const fd = openToRead(path);
  if (fd === undefined) return undefined;
  try {
    const stat = fstatSync(fd);
    assertStorable(stat);
    const bytes = readBytes(fd, stat.size);
    if (!isUtf8(bytes)) throw new CorruptFile("not UTF-8");
    return { value: bytes.toString("utf8"), stat };
  } finally {
    closeSync(fd);
  }
}

/** Opens without following a link and without waiting for a pipe's writer. */
function openToRead(path: string): number | undefined {
  // Windows has no O_NOFOLLOW.
  if (constants.O_NOFOLLOW === undefined) assertStorable(lstatSync(path, { throwIfNoEntry: false }));
  try {
    return openSync(path, constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0));
  } catch (thrown) {
    if (isMissing(thrown)) return undefined;
    assertStorable(lstatSync(path, { throwIfNoEntry: false }));
    throw thrown;
  }
}

function assertStorable(stat: Stats | undefined): void {
  if (stat === undefined) return;
  if (stat.isSymbolicLink()) throw new CorruptFile("a symbolic link");
  if (stat.isDirectory()) throw new CorruptFile("a folder");
  if (!stat.isFile()) throw new CorruptFile("not a regular file");
  if (stat.size > fileLimitBytes) throw new CorruptFile(`too large (${stat.size} bytes)`);
}

/** Shared read buffer that most files fit into. Its content is valid until the next read. */
const readBuffer = Buffer.allocUnsafeSlow(16 * 1024);

function readBytes(fd: number, size: number): Buffer {
  const bytes = size <= readBuffer.length ? readBuffer : Buffer.allocUnsafeSlow(size);
  let end = 0;
  for (let got = -1; got !== 0 && end < size; end += got) got = readSync(fd, bytes, end, size - end, null);
  return bytes.subarray(0, end);
}

/** Writes the whole file or nothing, with mode 0600. Creates missing folders with mode 0700. */
async function replaceFile(path: string, text: string, temporaryFolder: string): Promise<void> {
  const temporary = temporaryPath(path, temporaryFolder);
  try {
    await inFolder(temporaryFolder, () => writeDurably(temporary, text));
    await inFolder(dirname(path), () => retryInUse(() => rename(temporary, path)));
  } catch (thrown) {
    await rm(temporary, { force: true });
    throw thrown;
  }
}

/** Returns a name that is unique across processes: two writers of one temporary file would corrupt it. */
export function temporaryPath(path: string, temporaryFolder: string): string {
  return join(temporaryFolder, `.${basename(path)}.${process.pid}-${randomUuid()}.tmp`);
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

/** Runs the work; if the folder is missing, creates it and runs the work again. */
export async function inFolder<T>(folder: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (thrown) {
    if (codeOf(thrown) !== "ENOENT") throw thrown;
    await makeFolder(folder, 0o700);
    return work();
  }
}

/** Returns the path to move a damaged file to. */
export function asidePath(path: string, n: number): string {
  return `${path}.corrupt-${n}`;
}

/**
 * Renames the file to `<name>.corrupt-<n>` in the same folder and returns the new path; undefined when the file is
 * gone.
 */
export async function moveAside(path: string): Promise<string | undefined> {
  for (let n = 1; ; n++) {
    const aside = asidePath(path, n);
    if (await lstat(aside).catch(missing)) continue;
    try {
      await retryInUse(() => rename(path, aside));
      return aside;
    } catch (thrown) {
      if (codeOf(thrown) === "ENOENT") return undefined;
      throw thrown;
    }
  }
}

/** For `catch`: returns undefined for "no such file" and rethrows any other error. */
export function missing(thrown: unknown): undefined {
  if (codeOf(thrown) !== "ENOENT") throw thrown;
}
