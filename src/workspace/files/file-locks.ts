import { errorFields } from "../../base/error-fields.ts";
import { readdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { sha256 } from "../../base/text/hash.ts";
import { KeyedSerial, sleep } from "../../base/async.ts";
import { isMissing, UserError } from "../../base/errors.ts";
import type { Log } from "../../base/log.ts";
import { acquireLease, type Lease } from "../../storage/json/lock.ts";

/** Maximum wait for another process's lock on a file. */
const waitLimitMs = 10_000;
const firstPauseMs = 2;
const longestPauseMs = 50;

const unfinishedSchema = z.object({
  /** Absolute real path of the target. */
  path: z.string(),
  /** Absolute path of the temporary file in the same folder. */
  temporary: z.string(),
  /** SHA-256 of the previous content, in hex; null for a new file. */
  expected: z.string().nullable(),
  /** The inode that the temporary file was made with. */
  inode: z.string().optional(),
});

/** A write with a temporary file next to its target. */
export type UnfinishedWrite = z.infer<typeof unfinishedSchema>;

export interface FileLocksOptions {
  /** Lock folder shared by processes; without it, processes are not synchronized. */
  folder: string | undefined;
  log: Log;
  /** Cleans up after a write that a killed process left unfinished. */
  recover(write: UnfinishedWrite): Promise<void>;
}

/**
 * Locks files between tasks of this process and between processes with the same folder. Paths share 256
 * locks, to keep the folder small. The holder records the running write next to the lock.
 */
export class FileLocks {
  readonly #options: FileLocksOptions;
  readonly #queues = new KeyedSerial();
  readonly #held = new Set<string>();

  constructor(options: FileLocksOptions) {
    this.#options = options;
  }

  /** Runs the task when no other task, here or in another process, uses any of these files. */
  run<T>(paths: readonly string[], task: () => Promise<T>): Promise<T> {
    // Lock in one global order to prevent deadlocks.
    const [first, ...rest] = [...new Set(paths.map((path) => this.#keyOf(path)))].sort();
    return first === undefined ? task() : this.#run(first, rest, task);
  }

  /** Records a write before its temporary file is created, so that it is found after a kill. */
  record(write: UnfinishedWrite): Promise<void> {
    return this.#note(write.path, write, "w");
  }

  /** Adds the temporary file's inode to the record. */
  recordInode(path: string, inode: string): Promise<void> {
    return this.#note(path, { inode }, "a");
  }

  async forget(path: string): Promise<void> {
    const key = this.#keyOf(path);
    if (this.#held.has(key)) await rm(this.#notePath(key), { force: true });
  }

  /** Cleans up after killed processes. Running writes of other processes are left alone. */
  async recoverAll(): Promise<void> {
    for (const key of await this.#notedKeys()) {
      await this.#queues.run(key, async () => this.#hold(key, await this.#tryAcquire(key), async () => {}));
    }
  }

  #run<T>(key: string, rest: readonly string[], task: () => Promise<T>): Promise<T> {
    const [next, ...others] = rest;
    const inner = next === undefined ? task : () => this.#run(next, others, task);
    return this.#queues.run(key, async () => this.#hold(key, await this.#acquire(key), inner));
  }

  async #hold<T>(key: string, lease: Lease | undefined, task: () => Promise<T>): Promise<T> {
    if (lease?.status !== "held") return task();
    this.#held.add(key);
    try {
      await this.#recover(key);
      return await task();
    } finally {
      this.#held.delete(key);
      await lease.release();
    }
  }

  /** Undefined without a usable lock folder: only this process is synchronized then. */
  async #acquire(key: string): Promise<Lease | undefined> {
    const deadline = performance.now() + waitLimitMs;
    for (let pauseMs = firstPauseMs; ; pauseMs = Math.min(pauseMs * 2, longestPauseMs)) {
      const lease = await this.#tryAcquire(key);
      if (lease?.status !== "busy") return lease;
      if (performance.now() >= deadline) throw new UserError(createBusyMessage(lease.pid));
      await sleep(pauseMs);
    }
  }

  async #tryAcquire(key: string): Promise<Lease | undefined> {
    const { folder } = this.#options;
    if (folder === undefined) return undefined;
    try {
      return await acquireLease(join(folder, `${key}.lock`));
    } catch (error) {
      this.#warn("file changed without shared lock", error);
      return undefined;
    }
  }

  async #note(path: string, fields: Partial<UnfinishedWrite>, flag: "w" | "a"): Promise<void> {
    const key = this.#keyOf(path);
    if (!this.#held.has(key)) return;
    try {
      // One line per call, because a kill leaves whole lines.
      await writeFile(this.#notePath(key), `${JSON.stringify(fields)}\n`, { mode: 0o600, flag });
    } catch (error) {
      this.#warn("unfinished write not recorded", error);
    }
  }

  /** Cleans up the unfinished write of the previous holder. */
  async #recover(key: string): Promise<void> {
    const note = this.#notePath(key);
    const text = await readIfExists(note);
    if (text === undefined) return;
    try {
      const fields = text.split("\n").flatMap((line): unknown[] => (line === "" ? [] : [JSON.parse(line)]));
      // A record without a complete line was written before its temporary file.
      if (fields.length > 0)
        await this.#options.recover(unfinishedSchema.parse(Object.assign({}, ...fields)));
    } catch (error) {
      this.#warn("unfinished write not cleaned up", error);
    }
    await rm(note, { force: true });
  }

  async #notedKeys(): Promise<string[]> {
    const { folder } = this.#options;
    if (folder === undefined) return [];
    try {
      const names = await readdir(folder);
      return names
        .filter((name) => name.endsWith(noteEnding))
        .map((name) => name.slice(0, -noteEnding.length));
    } catch (error) {
      if (!isMissing(error)) this.#warn("unfinished writes not listed", error);
      return [];
    }
  }

  #keyOf(path: string): string {
    if (this.#options.folder === undefined) return path;
    return sha256(path).slice(0, 2);
  }

  #notePath(key: string): string {
    return join(this.#options.folder ?? "", `${key}${noteEnding}`);
  }

  #warn(message: string, error: unknown): void {
    this.#options.log.warn(message, errorFields(error));
  }
}

const noteEnding = ".json";

async function readIfExists(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, "utf8");
  } catch (error) {
    if (isMissing(error)) return undefined;
    throw error;
  }
}

function createBusyMessage(pid: number | undefined): string {
  const who = pid === undefined ? "Another process" : `The process ${pid}`;
  return `${who} has been changing this file for ${waitLimitMs / 1_000} s. Nothing was changed; try again.`;
}
