import { errorFields } from "../../base/error-fields.ts";
import { constants } from "node:fs";
import { access, lstat, utimes } from "node:fs/promises";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { sha256 } from "../../base/text/hash.ts";
import { codeOf } from "../../base/errors.ts";
import { silentLog } from "../../base/log.ts";
import type { Log } from "../../base/log.ts";
import { makeFolder } from "../../base/files/make-folder.ts";
import { openForReading, withOpenFile, writeAtomically } from "./files.ts";

/** Stores contents of changed files by SHA-256, to show and undo changes. */
export interface Snapshots {
  /**
   * Returns the hash; undefined if the content is too large. With `isDurable` false, a power failure may lose the
   * content: for many contents at once.
   */
  save(bytes: Uint8Array, isDurable?: boolean): Promise<string | undefined>;
  load(hash: string): Promise<Buffer | undefined>;
}

/** Larger contents are not stored; their changes can be neither shown nor undone. */
export const snapshotLimitBytes = 10 * 1024 * 1024;
/** Bytes of recent contents cached in memory, because the editor shows them next. */
const memoryLimitBytes = 16 * 1024 * 1024;

/** Opens a store in a folder: `<first two digits of the hash>/<the rest>`, compressed with zlib. */
export function openSnapshots(folder: string, log: Log = silentLog): Snapshots {
  return new SnapshotFolder(folder, log);
}

class SnapshotFolder implements Snapshots {
  readonly #folder: string;
  readonly #log: Log;
  readonly #recent = new RecentContents(memoryLimitBytes);

  constructor(folder: string, log: Log) {
    this.#folder = folder;
    this.#log = log;
  }

  async save(bytes: Uint8Array, isDurable = true): Promise<string | undefined> {
    if (bytes.byteLength > snapshotLimitBytes) return undefined;
    const hash = sha256(bytes);
    const path = this.#pathOf(hash);
    await makePrivateFolder(dirname(path));
    // Housekeeping deletes by age, so a content that is saved again becomes new.
    if (await exists(path)) await utimes(path, new Date(), new Date());
    else await writeAtomically(path, await compress(bytes), 0o600, isDurable);
    this.#recent.add(hash, Buffer.from(bytes));
    return hash;
  }

  async load(hash: string): Promise<Buffer | undefined> {
    if (!/^[0-9a-f]{64}$/.test(hash)) return undefined;
    return this.#recent.get(hash) ?? (await this.#loadFromDisk(hash));
  }

  async #loadFromDisk(hash: string): Promise<Buffer | undefined> {
    const packed = await this.#readPacked(hash);
    if (packed === undefined) return undefined;
    const bytes = await this.#unpack(hash, packed);
    if (bytes !== undefined) this.#recent.add(hash, bytes);
    return bytes;
  }

  /** An unreadable snapshot counts as missing, so that the rest of a session still loads. */
  async #readPacked(hash: string): Promise<Buffer | undefined> {
    try {
      return await readUnlinkedFile(this.#pathOf(hash));
    } catch (error) {
      this.#log.warn("snapshot cannot be read", { hash, ...errorFields(error) });
      return undefined;
    }
  }

  /** A damaged snapshot counts as missing: no undo is better than a wrong one. */
  async #unpack(hash: string, packed: Buffer): Promise<Buffer | undefined> {
    try {
      const bytes = await decompress(packed);
      if (sha256(bytes) === hash) return bytes;
      this.#log.warn("snapshot has the wrong contents", { hash });
    } catch (error) {
      this.#log.warn("snapshot cannot be decompressed", { hash, ...errorFields(error) });
    }
    return undefined;
  }

  #pathOf(hash: string): string {
    return join(this.#folder, hash.slice(0, 2), hash.slice(2));
  }
}

/** Loads the library with the first content instead of at start. */
async function compress(bytes: Uint8Array): Promise<Buffer> {
  const { deflate } = await import("node:zlib");
  return promisify<Uint8Array, Buffer>(deflate)(bytes);
}

async function decompress(packed: Buffer): Promise<Buffer> {
  const { inflate } = await import("node:zlib");
  return new Promise((resolve, reject) => {
    inflate(packed, { maxOutputLength: snapshotLimitBytes }, (error, bytes) =>
      error === null ? resolve(bytes) : reject(error),
    );
  });
}

/** Cache of recently used contents, limited by bytes. */
class RecentContents {
  readonly #contents = new Map<string, Buffer>();
  readonly #limitBytes: number;
  #bytes = 0;

  constructor(limitBytes: number) {
    this.#limitBytes = limitBytes;
  }

  get(hash: string): Buffer | undefined {
    const bytes = this.#contents.get(hash);
    if (bytes === undefined) return undefined;
    // Maps preserve insertion order: re-insert to make it the newest.
    this.#contents.delete(hash);
    this.#contents.set(hash, bytes);
    return bytes;
  }

  add(hash: string, bytes: Buffer): void {
    if (this.get(hash) !== undefined) return;
    this.#contents.set(hash, bytes);
    this.#bytes += bytes.byteLength;
    for (const [oldest, old] of this.#contents) {
      if (this.#bytes <= this.#limitBytes) return;
      this.#contents.delete(oldest);
      this.#bytes -= old.byteLength;
    }
  }
}

async function makePrivateFolder(path: string): Promise<void> {
  await makeFolder(path, 0o700);
  if (!(await lstat(path)).isDirectory())
    throw new Error(`${path} is a link; snapshots are not stored through links.`);
}

async function readUnlinkedFile(path: string): Promise<Buffer | undefined> {
  try {
    if (!(await lstat(dirname(path))).isDirectory()) return undefined;
    return await withOpenFile(path, openForReading | (constants.O_NOFOLLOW ?? 0), (file) => file.readFile());
  } catch (error) {
    if (codeOf(error) === "ENOENT" || codeOf(error) === "ELOOP") return undefined;
    throw error;
  }
}

async function exists(path: string): Promise<boolean> {
  try {
    await access(path);
    return true;
  } catch (error) {
    if (codeOf(error) === "ENOENT") return false;
    throw error;
  }
}
