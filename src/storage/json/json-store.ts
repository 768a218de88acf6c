import { errorFields } from "../../base/error-fields.ts";
import { existsSync, lstatSync } from "node:fs";
import { lstat, readdir, rm } from "node:fs/promises";
import { join, sep } from "node:path";
import { setImmediate as breathe } from "node:timers/promises";
import { Low } from "lowdb";
import { Serial } from "../../base/async.ts";
import { codeOf } from "../../base/errors.ts";
import type { Validator } from "../../base/validator.ts";
import type { Log } from "../../base/log.ts";
import { toStoreError, withStoreErrors } from "./disk-error.ts";
import {
  type Box,
  CorruptFile,
  type Held,
  asidePath,
  JsonFile,
  missing,
  moveAside,
  readJson,
  readText,
} from "./json-file.ts";
import { acquireStoreLease, updateShared } from "./lock.ts";

const ending = ".json";

/** Files read in one go by {@link JsonStore.readEach} before other work gets its turn. */
const sliceFiles = 64;

/** Other processes' temporary files are left alone for this long: they may be in the middle of a write. */
const temporaryAgeMs = 60_000;

export interface JsonStoreOptions {
  root: string;
  log: Log;
  /** Told of each file that was moved aside: its old path and why. */
  onQuarantine?: (path: string, reason: string) => void;
}

/**
 * JSON files under one folder. A key such as `["session", "p1", "ses_1"]` is the file `session/p1/ses_1.json`.
 * Values are checked when read; a file that is not what it should be is moved aside to `<name>.corrupt-<n>`, reported,
 * and read as missing. Failures of the disk reject with a `UserError`.
 */
export class JsonStore {
  readonly root: string;
  readonly temporaryFolder: string;
  readonly #log: Log;
  readonly #onQuarantine: (path: string, reason: string) => void;
  /** One per path: two writers of one path in one process would race. */
  readonly #files = new Map<string, { file: StoredFile; users: number }>();

  constructor({ root, log, onQuarantine = () => {} }: JsonStoreOptions) {
    this.root = root;
    this.temporaryFolder = join(root, "tmp");
    this.#log = log;
    this.#onQuarantine = onQuarantine;
  }

  /** The file of a key. Throws for key parts that are no plain file names. */
  pathOf(key: readonly string[], fileEnding = ending): string {
    return this.folderOf(key) + fileEnding;
  }

  folderOf(key: readonly string[]): string {
    return join(this.root, ...key.map(checkedPart));
  }

  /** Whether there is something in the file's place, read or not. */
  async has(key: string[]): Promise<boolean> {
    await this.#checkFolders(key);
    return existsSync(this.pathOf(key));
  }

  /** Whether a damaged file of the key was moved aside. */
  async hasAside(key: string[]): Promise<boolean> {
    await this.#checkFolders(key);
    return existsSync(asidePath(this.pathOf(key), 1));
  }

  async read<T>(key: string[], schema: Validator<T>): Promise<T | undefined> {
    const path = this.pathOf(key);
    return this.#use(path, (file) => file.run((low) => this.#load(key, low, schema)));
  }

  /** While a write is under way, newer values replace each other: the last one is written next. */
  async write(key: string[], value: unknown): Promise<void> {
    const path = this.pathOf(key);
    await this.#use(path, (file) => file.write(value, (low) => this.#save(key, path, low)));
  }

  /**
   * Reads, changes and writes with no other update of any process in between. Undefined from `fn` removes; the value
   * as it was writes nothing.
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

  /** Removes the file; nothing happens when there is none. */
  async remove(key: string[]): Promise<void> {
    const path = this.pathOf(key);
    await this.#use(path, (file) =>
      file.run(async () => {
        await this.#checkFolders(key);
        await this.#delete(path);
      }),
    );
  }

  /** The same, and the damaged versions of it that were moved aside. */
  async removeWithAsides(key: string[]): Promise<void> {
    await this.remove(key);
    const path = this.pathOf(key);
    await withStoreErrors(path, async () => {
      for (let n = 1; existsSync(asidePath(path, n)); n++) await rm(asidePath(path, n), { force: true });
    });
  }

  /** Removes everything below the prefix. */
  async removeAll(prefix: string[]): Promise<void> {
    const folder = this.folderOf(prefix);
    await this.#checkFolders(prefix);
    await withStoreErrors(folder, () => rm(folder, { recursive: true, force: true }));
  }

  /** All keys below the prefix, sorted. Temporary, moved-aside and foreign files are left out. */
  async list(prefix: string[]): Promise<string[][]> {
    const keys: string[][] = [];
    const entries = await this.entries(prefix);
    for (const entry of entries.sort((a, b) => (a.name < b.name ? -1 : 1))) {
      if (entry.isFolder) keys.push(...(await this.list([...prefix, entry.name])));
      else keys.push([...prefix, entry.name]);
    }
    return keys;
  }

  /** The names of the files directly below the prefix, without their `.json`; cheaper than {@link entries}. */
  async names(prefix: string[]): Promise<string[]> {
    const files = await this.fileNames(prefix);
    return files.map((file) => file.slice(0, -ending.length)).filter(isPlainName);
  }

  /** The same with their `.json`, some of which may be no file of a key. */
  async fileNames(prefix: string[]): Promise<string[]> {
    return (await this.#namesIn(prefix)).filter((file) => file.endsWith(ending));
  }

  /** The names directly below the prefix that may be folders. */
  async folderNames(prefix: string[]): Promise<string[]> {
    return (await this.#namesIn(prefix)).filter(isPlainName);
  }

  async #namesIn(prefix: string[]): Promise<string[]> {
    const folder = this.folderOf(prefix);
    await this.#checkFolders([...prefix, ""]);
    return (await withStoreErrors(folder, () => readdir(folder).catch(missing))) ?? [];
  }

  /** The names directly below the prefix, files without their `.json`. */
  async entries(prefix: string[]): Promise<{ name: string; isFolder: boolean }[]> {
    const folder = this.folderOf(prefix);
    await this.#checkFolders([...prefix, ""]);
    const found = await withStoreErrors(folder, () =>
      readdir(folder, { withFileTypes: true }).catch(missing),
    );
    const entries: { name: string; isFolder: boolean }[] = [];
    for (const entry of found ?? []) {
      const isFile = entry.name.endsWith(ending);
      const name = isFile ? entry.name.slice(0, -ending.length) : entry.name;
      if (!isPlainName(name) || isMovedAside(name)) continue;
      if (isFile || entry.isDirectory()) entries.push({ name, isFolder: !isFile });
    }
    return entries;
  }

  /**
   * Reads the files of one folder in the given order and lets other work run in between. The value is undefined for
   * those that are missing, unreadable (a warning says so) or moved aside.
   */
  async *readEach<T, Name extends string>(
    prefix: string[],
    names: Iterable<Name>,
    schema: Validator<T>,
  ): AsyncGenerator<{ name: Name; value: T | undefined }> {
    await this.#checkFolders([...prefix, ""]);
    let count = 0;
    for (const name of names) {
      if (++count % sliceFiles === 0) await breathe();
      yield { name, value: (await this.readOrSkip([...prefix, name], schema))?.value };
    }
  }

  /** What stands at a path of {@link pathOf}, at once; undefined where {@link readOrSkip} has something to tell. */
  peek<T>(path: string, form: Validator<T>): Held<T> | undefined {
    try {
      return readAs(path, form);
    } catch {
      return undefined;
    }
  }

  /** For reading many: an unreadable file is skipped with a warning and hides no others. */
  async readOrSkip<T>(key: string[], schema: Validator<T>): Promise<Held<T> | undefined> {
    const path = this.pathOf(key);
    try {
      return readAs(path, schema);
    } catch (thrown) {
      if (thrown instanceof CorruptFile) await this.quarantine(path, thrown.message);
      else this.#log.warn("skipped a stored file", { path, ...errorFields(thrown) });
      return undefined;
    }
  }

  /** Text of a file that is not JSON as a whole; undefined when missing. Throws {@link CorruptFile}. */
  async readText(key: string[], fileEnding: string): Promise<string | undefined> {
    const path = this.pathOf(key, fileEnding);
    await this.#checkFolders(key);
    return withStoreErrors(path, async () => readText(path)?.value);
  }

  /** Moves the file of a key aside and says so. */
  async quarantine(path: string, reason: string): Promise<void> {
    const aside = await withStoreErrors(path, () => moveAside(path));
    if (aside === undefined) return;
    this.#log.warn("moved a stored file aside", { path, aside, reason });
    this.#onQuarantine(path, reason);
  }

  /** Deletes what writes that were killed have left. */
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
      // To open what is not there makes an error with a stack: each new message is looked for before it is written.
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
        // A rename cannot replace a folder.
        if (!(await lstat(path).catch(missing))?.isDirectory()) throw thrown;
        await this.quarantine(path, "a folder");
        await low.write();
      }
    });
  }

  async #delete(path: string): Promise<void> {
    await withStoreErrors(path, () => rm(path, { force: true, recursive: true }));
  }

  /** A link in place of a folder would lead reads and writes out of the store. */
  async #checkFolders(key: readonly string[]): Promise<void> {
    let folder = this.root;
    for (const part of key.slice(0, -1)) {
      folder = join(folder, part);
      if (isLink(folder)) await this.quarantine(folder, "a symbolic link");
    }
  }

  /** Keeps the file's front open for as long as somebody uses it. */
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

/** One file in use: its operations run one after the other, writes that wait are merged. */
class StoredFile {
  readonly #low: Low<Box>;
  readonly #serial = new Serial();
  #waiting: { value: unknown; done: Promise<void> } | undefined;

  constructor(path: string, temporaryFolder: string) {
    this.#low = new Low<Box>(new JsonFile(path, temporaryFolder), { value: undefined });
  }

  run<T>(work: (low: Low<Box>) => Promise<T>): Promise<T> {
    // A later write must not overtake this one.
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

function readAs<T>(path: string, form: Validator<T>): Held<T> | undefined {
  const read = readJson(path);
  return read && { value: parse(read.value, form), stat: read.stat };
}

function parse<T>(value: unknown, schema: Validator<T>): T {
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  const issue = parsed.error.issues[0];
  throw new CorruptFile(
    `not of the expected form: ${issue?.path.map(String).join(".")}: ${issue?.message}`.slice(0, 200),
  );
}

function isLink(path: string): boolean {
  try {
    return lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() ?? false;
  } catch (thrown) {
    throw toStoreError(thrown, path);
  }
}

/** Letters of any language are fine; what leads elsewhere, hides a file or ends a name is not. */
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
