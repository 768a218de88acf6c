import { errorFields } from "../../base/error-fields.ts";
import { existsSync, lstatSync } from "node:fs";
import { lstat, readdir, rm } from "node:fs/promises";
import { join, sep } from "node:path";
import { setImmediate as yieldToEventLoop } from "node:timers/promises";
import { Low } from "lowdb";
import { Serial } from "../../base/async.ts";
import { codeOf } from "../../base/errors.ts";
import type { Validator } from "../../base/validator.ts";
import type { Log } from "../../base/log.ts";
import { toStoreError, withStoreErrors } from "./disk-error.ts";
import {
  type Box,
  CorruptFile,
  type FileContent,
  asidePath,
  JsonFile,
  missing,
  moveAside,
  readJson,
  readText,
} from "./json-file.ts";
import { acquireStoreLease, updateShared } from "./lock.ts";

const extension = ".json";

/** Files that {@link JsonStore.readEach} reads before it yields to the event loop. */
const filesPerSlice = 64;

/** Temporary files of running processes are not deleted before this age: a write may be in progress. */
const temporaryAgeMs = 60_000;

export interface JsonStoreOptions {
  root: string;
  log: Log;
  /** Called for each file moved aside, with its old path and the reason. */
  onQuarantine?: (path: string, reason: string) => void;
}

/**
 * JSON files under one folder. The key `["session", "p1", "ses_1"]` is the file `session/p1/ses_1.json`.
 * - Values are validated when read. An invalid file is moved aside to `<name>.corrupt-<n>`, reported, and read as
 *   missing.
 * - Disk errors reject with a `UserError`.
 */
export class JsonStore {
  readonly root: string;
  readonly temporaryFolder: string;
  readonly #log: Log;
  readonly #onQuarantine: (path: string, reason: string) => void;
  /** One per path, because two writers of one path would race. */
  readonly #files = new Map<string, { file: StoredFile; users: number }>();

  constructor({ root, log, onQuarantine = () => {} }: JsonStoreOptions) {
    this.root = root;
    this.temporaryFolder = join(root, "tmp");
    this.#log = log;
    this.#onQuarantine = onQuarantine;
  }

  /** Returns the file of a key. Throws for key parts that are not plain file names. */
  pathOf(key: readonly string[], fileExtension = extension): string {
    return this.folderOf(key) + fileExtension;
  }

  folderOf(key: readonly string[]): string {
    return join(this.root, ...key.map(checkedPart));
  }

  /** True when anything exists at the key's path, valid or not. */
  async has(key: string[]): Promise<boolean> {
    await this.#checkFolders(key);
    return existsSync(this.pathOf(key));
  }

  /** True when a damaged file of the key was moved aside. */
  async hasAside(key: string[]): Promise<boolean> {
    await this.#checkFolders(key);
    return existsSync(asidePath(this.pathOf(key), 1));
  }

  async read<T>(key: string[], schema: Validator<T>): Promise<T | undefined> {
    const path = this.pathOf(key);
    return this.#use(path, (file) => file.run((low) => this.#load(key, low, schema)));
  }

  /** Writes a value. Values given during a write replace each other; only the last one is written next. */
  async write(key: string[], value: unknown): Promise<void> {
    const path = this.pathOf(key);
    await this.#use(path, (file) => file.write(value, (low) => this.#save(key, path, low)));
  }

  /**
   * Reads, changes and writes a value with no update by any process in between. `fn` returns undefined to remove the
   * file, or the same value to write nothing.
   */
  async update<T>(
    key: string[],
    schema: Validator<T>,
    fn: (value: T | undefined) => T | undefined,
  ): Promise<T | undefined> {
    const path = this.pathOf(key);
    const change = async (low: Low<Box>) => {
      const before = await this.#load(key, low, schema);
      const value = fn(before);
      if (value === before) return value;
      low.data = { value };
      if (value === undefined) await this.#delete(path);
      else await this.#save(key, path, low);
      return value;
    };
    const acquire = () => acquireStoreLease(this, `update-${key.join("-")}`);
    return this.#use(path, (file) => file.run((low) => updateShared(path, acquire, () => change(low))));
  }

  /** Removes the file, if there is one. */
  async remove(key: string[]): Promise<void> {
    const path = this.pathOf(key);
    await this.#use(path, (file) =>
      file.run(async () => {
        await this.#checkFolders(key);
        await this.#delete(path);
      }),
    );
  }

  /** Removes the file and its damaged versions that were moved aside. */
  async removeWithAsides(key: string[]): Promise<void> {
    await this.remove(key);
    const path = this.pathOf(key);
    await withStoreErrors(path, async () => {
      for (let n = 1; existsSync(asidePath(path, n)); n++) await rm(asidePath(path, n), { force: true });
    });
  }

  async removeAll(prefix: string[]): Promise<void> {
    const folder = this.folderOf(prefix);
    await this.#checkFolders(prefix);
    await withStoreErrors(folder, () => rm(folder, { recursive: true, force: true }));
  }

  /** Returns all keys below the prefix, sorted. Skips temporary, moved-aside and foreign files. */
  async list(prefix: string[]): Promise<string[][]> {
    const keys: string[][] = [];
    const entries = await this.entries(prefix);
    for (const entry of entries.sort((a, b) => (a.name < b.name ? -1 : 1))) {
      if (entry.isFolder) keys.push(...(await this.list([...prefix, entry.name])));
      else keys.push([...prefix, entry.name]);
    }
    return keys;
  }

  /** Returns the names of files directly below the prefix, without `.json`. Cheaper than {@link entries}. */
  async names(prefix: string[]): Promise<string[]> {
    const files = await this.fileNames(prefix);
    return files.map((file) => file.slice(0, -extension.length)).filter(isPlainName);
  }

  /** Returns file names directly below the prefix, with `.json`; some may not be valid keys. */
  async fileNames(prefix: string[]): Promise<string[]> {
    return (await this.#namesIn(prefix)).filter((file) => file.endsWith(extension));
  }

  /** Returns the names directly below the prefix that may be folders. */
  async folderNames(prefix: string[]): Promise<string[]> {
    return (await this.#namesIn(prefix)).filter(isPlainName);
  }

  async #namesIn(prefix: string[]): Promise<string[]> {
    const folder = this.folderOf(prefix);
    await this.#checkFolders([...prefix, ""]);
    return (await withStoreErrors(folder, () => readdir(folder).catch(missing))) ?? [];
  }

  /** Returns the entries directly below the prefix; file names without `.json`. */
  async entries(prefix: string[]): Promise<{ name: string; isFolder: boolean }[]> {
    const folder = this.folderOf(prefix);
    await this.#checkFolders([...prefix, ""]);
    const found = await withStoreErrors(folder, () =>
      readdir(folder, { withFileTypes: true }).catch(missing),
    );
    const entries: { name: string; isFolder: boolean }[] = [];
    for (const entry of found ?? []) {
      const isFile = entry.name.endsWith(extension);
      const name = isFile ? entry.name.slice(0, -extension.length) : entry.name;
      if (!isPlainName(name) || isMovedAside(name)) continue;
      if (isFile || entry.isDirectory()) entries.push({ name, isFolder: !isFile });
    }
    return entries;
  }

  /**
   * Reads files of one folder in the given order and yields to the event loop in between. The value is undefined for
   * a file that is missing, unreadable (logs a warning) or moved aside.
   */
  async *readEach<T, Name extends string>(
    prefix: string[],
    names: Iterable<Name>,
    schema: Validator<T>,
  ): AsyncGenerator<{ name: Name; value: T | undefined }> {
    await this.#checkFolders([...prefix, ""]);
    let count = 0;
    for (const name of names) {
      if (++count % filesPerSlice === 0) await yieldToEventLoop();
      yield { name, value: (await this.readOrSkip([...prefix, name], schema))?.value };
    }
  }

  /**
   * Reads a path of {@link pathOf} synchronously; undefined where {@link readOrSkip} would report a problem or find
   * nothing.
   */
  peek<T>(path: string, validator: Validator<T>): FileContent<T> | undefined {
    try {
      return readAs(path, validator);
    } catch {
      return undefined;
    }
  }

  /** Reads one of many files: an unreadable file is skipped with a warning. */
  async readOrSkip<T>(key: string[], schema: Validator<T>): Promise<FileContent<T> | undefined> {
    const path = this.pathOf(key);
    try {
      return readAs(path, schema);
    } catch (thrown) {
      if (thrown instanceof CorruptFile) await this.quarantine(path, thrown.message);
      else this.#log.warn("stored file skipped", { path, ...errorFields(thrown) });
      return undefined;
    }
  }

  /** Returns the text of a file that is not one JSON value; undefined when missing. Throws {@link CorruptFile}. */
  async readText(key: string[], fileExtension: string): Promise<string | undefined> {
    const path = this.pathOf(key, fileExtension);
    await this.#checkFolders(key);
    return withStoreErrors(path, async () => readText(path)?.value);
  }

  /** Moves a file aside, logs a warning and notifies `onQuarantine`. */
  async quarantine(path: string, reason: string): Promise<void> {
    const aside = await withStoreErrors(path, () => moveAside(path));
    if (aside === undefined) return;
    this.#log.warn("stored file moved aside", { path, aside, reason });
    this.#onQuarantine(path, reason);
  }

  /** Deletes temporary files of killed writes. */
  async removeTemporaries(): Promise<void> {
    const names = await withStoreErrors(this.temporaryFolder, () =>
      readdir(this.temporaryFolder).catch(missing),
    );
    for (const name of names ?? []) {
      if (name.startsWith(".") && name.endsWith(".tmp")) await this.#removeTemporary(name);
    }
  }

  async #removeTemporary(name: string): Promise<void> {
    const path = join(this.temporaryFolder, name);
    await withStoreErrors(path, async () => {
      const stat = await lstat(path).catch(missing);
      const pid = Number(/\.(\d+)-[^.]+\.tmp$/.exec(name)?.[1]);
      const inUse = isAlive(pid) && stat !== undefined && Date.now() - stat.mtimeMs < temporaryAgeMs;
      if (!inUse) await rm(path, { force: true, recursive: true });
    });
  }

  async #load<T>(key: string[], low: Low<Box>, schema: Validator<T>): Promise<T | undefined> {
    const path = this.pathOf(key);
    await this.#checkFolders(key);
    low.data = { value: undefined };
    try {
      // Checked first, because a failed open creates an error with a stack, and each new message is looked up before
      // it is written.
      if (lstatSync(path, { throwIfNoEntry: false }) === undefined) return undefined;
      await low.read();
      return low.data.value === undefined ? undefined : parse(low.data.value, schema);
    } catch (thrown) {
      if (!(thrown instanceof CorruptFile)) throw toStoreError(thrown, path);
      await this.quarantine(path, thrown.message);
      return undefined;
    }
  }

  async #save(key: string[], path: string, low: Low<Box>): Promise<void> {
    await this.#checkFolders(key);
    await withStoreErrors(path, async () => {
      try {
        await low.write();
      } catch (thrown) {
        if (!(await lstat(path).catch(missing))?.isDirectory()) throw thrown;
        await this.quarantine(path, "a folder");
        await low.write();
      }
    });
  }

  async #delete(path: string): Promise<void> {
    await withStoreErrors(path, () => rm(path, { force: true, recursive: true }));
  }

  /** A link instead of a folder would lead reads and writes out of the store. */
  async #checkFolders(key: readonly string[]): Promise<void> {
    let folder = this.root;
    for (const part of key.slice(0, -1)) {
      folder = join(folder, part);
      if (isLink(folder)) await this.quarantine(folder, "a symbolic link");
    }
  }

  /** Shares one {@link StoredFile} per path while it is in use. */
  async #use<T>(path: string, work: (file: StoredFile) => Promise<T>): Promise<T> {
    const entry = this.#files.get(path) ?? { file: new StoredFile(path, this.temporaryFolder), users: 0 };
    this.#files.set(path, entry);
    entry.users++;
    try {
      return await work(entry.file);
    } finally {
      entry.users--;
      if (entry.users === 0) this.#files.delete(path);
    }
  }
}

/** One file in use. Operations run one after the other; waiting writes are merged. */
class StoredFile {
  readonly #low: Low<Box>;
  readonly #serial = new Serial();
  #waiting: { value: unknown; done: Promise<void> } | undefined;

  constructor(path: string, temporaryFolder: string) {
    this.#low = new Low<Box>(new JsonFile(path, temporaryFolder), { value: undefined });
  }

  run<T>(work: (low: Low<Box>) => Promise<T>): Promise<T> {
    // A later write must not be merged into one queued before this operation.
    this.#waiting = undefined;
    return this.#serial.run(() => work(this.#low));
  }

  write(value: unknown, save: (low: Low<Box>) => Promise<void>): Promise<void> {
    if (this.#waiting) {
      this.#waiting.value = value;
      return this.#waiting.done;
    }
    const waiting = { value, done: Promise.resolve() };
    waiting.done = this.#serial.run(async () => {
      if (this.#waiting === waiting) this.#waiting = undefined;
      this.#low.data = { value: waiting.value };
      await save(this.#low);
    });
    this.#waiting = waiting;
    return waiting.done;
  }
}

function readAs<T>(path: string, validator: Validator<T>): FileContent<T> | undefined {
  const read = readJson(path);
  return read && { value: parse(read.value, validator), stat: read.stat };
}

function parse<T>(value: unknown, schema: Validator<T>): T {
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  const issue = parsed.error.issues[0];
  throw new CorruptFile(
    `not of the expected validator: ${issue?.path.map(String).join(".")}: ${issue?.message}`.slice(0, 200),
  );
}

function isLink(path: string): boolean {
  try {
    return lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() ?? false;
  } catch (thrown) {
    throw toStoreError(thrown, path);
  }
}

/** Accepts letters of any language; rejects names that leave the folder, hide a file or end the name. */
function isPlainName(part: string): boolean {
  return (
    part !== "" &&
    part.length <= 200 &&
    !part.startsWith(".") &&
    !/[/\\\0:]/.test(part) &&
    !part.includes(sep)
  );
}

function isMovedAside(name: string): boolean {
  return /\.corrupt-\d+$/.test(name);
}

function checkedPart(part: string): string {
  if (!isPlainName(part)) throw new Error(`not a part of a key: ${JSON.stringify(part)}`);
  return part;
}

function isAlive(pid: number): boolean {
  if (!Number.isInteger(pid) || pid <= 0) return false;
  try {
    process.kill(pid, 0);
    return true;
  } catch (thrown) {
    return codeOf(thrown) === "EPERM";
  }
}
