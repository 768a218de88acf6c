import { errorFields } from "../base/error-fields.ts";
import type { Dirent } from "node:fs";
import { lstat, readdir, rm, utimes } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { setImmediate as yieldToEvents } from "node:timers/promises";
import { z } from "zod";
import { codeOf, UserError } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import type { SessionId } from "../message/ids.ts";
import type { SessionInfo } from "../message/message.ts";
import { acquireStoreLease } from "../storage/json/lock.ts";
import type { SessionStore } from "../storage/session-store.ts";

const hourMs = 3_600_000;
const dayMs = 24 * hourMs;

/** Interval between runs, across all processes of a store. */
const roundEveryMs = hourMs;
/** Interval between searches for unused snapshots, which read every session. */
const snapshotsEveryMs = 7 * dayMs;
/** Delay after a turn, so that the run does not compete with it. */
const roundDelayMs = 2_000;
/** Age at which stored tool outputs are deleted. */
const outputAgeMs = 7 * dayMs;
/** Age since the last known use at which unused snapshots are deleted. */
const snapshotAgeMs = 30 * dayMs;
/** Files handled before yielding to other work. */
const filesPerSlice = 64;
/** Sessions read per page. */
const pageSize = 500;

export interface HousekeepingDeps {
  store(): Promise<SessionStore>;
  /** Folder of complete tool outputs. */
  outputFolder: string;
  /** Folder of file snapshots, as `<first two digits of the hash>/<the rest>`. */
  snapshotFolder: string;
  ages(): Promise<SessionAges>;
  log: Log;
}

/** Days without use after which a session is archived or deleted; undefined means never. */
export interface SessionAges {
  archiveAfterDays: number | undefined;
  removeAfterDays: number | undefined;
}

/** Deletes old data. Starts no timer until a turn has ended and a run is due; only one process does each run. */
export class Housekeeping {
  readonly #deps: HousekeepingDeps;
  readonly #closed = new AbortController();
  #nextMs = 0;
  #timer: NodeJS.Timeout | undefined;
  #round: Promise<void> = Promise.resolve();

  constructor(deps: HousekeepingDeps) {
    this.#deps = deps;
  }

  /** Cheap unless a run is due. */
  onTurnEnd(): void {
    const now = Date.now();
    // Do not wait if the clock was set back.
    if (now < this.#nextMs && this.#nextMs - now <= roundEveryMs) return;
    this.#nextMs = now + roundEveryMs;
    this.#timer = setTimeout(() => {
      this.#round = this.#runInBackground();
    }, roundDelayMs);
    this.#timer.unref();
  }

  /** Runs unless another process did within the hour or does so now. Returns whether it ran. */
  async runIfDue(): Promise<boolean> {
    const store = await this.#deps.store();
    const lease = await acquireStoreLease(store.files, "housekeeping");
    if (lease.status === "busy") return false;
    try {
      const last = await store.files.read(roundKey, roundSchema);
      if (isWithin(last?.time, roundEveryMs)) return false;
      const sweepsSnapshots = !isWithin(last?.snapshots, snapshotsEveryMs);
      const time = Date.now();
      await store.files.write(roundKey, { time, snapshots: sweepsSnapshots ? time : last?.snapshots });
      await this.#runRound(store, sweepsSnapshots);
      return true;
    } finally {
      await lease.release();
    }
  }

  /** Stops a run at the next file. */
  async close(): Promise<void> {
    clearTimeout(this.#timer);
    this.#closed.abort();
    await this.#round;
  }

  async #runInBackground(): Promise<void> {
    try {
      await this.runIfDue();
    } catch (thrown) {
      this.#deps.log.warn("housekeeping failed", errorFields(thrown));
    }
  }

  async #runRound(store: SessionStore, sweepsSnapshots: boolean): Promise<void> {
    const steps = [
      () => this.#sweepOutputs(),
      () => this.#archiveSessions(store),
      () => (sweepsSnapshots ? this.#sweepSnapshots(store) : undefined),
    ];
    for (const step of steps) {
      if (this.#closed.signal.aborted) return;
      await step();
    }
  }

  async #sweepOutputs(): Promise<void> {
    for await (const path of this.#filesOlderThan(this.#deps.outputFolder, outputAgeMs)) {
      await rm(path, { force: true });
    }
  }

  async #archiveSessions(store: SessionStore): Promise<void> {
    const { archiveAfterDays = Infinity, removeAfterDays = Infinity } = await this.#deps.ages();
    if (archiveAfterDays === Infinity && removeAfterDays === Infinity) return;
    for (const info of await listUnusedSessions(store, Math.min(archiveAfterDays, removeAfterDays))) {
      if (this.#closed.signal.aborted) return;
      if (daysSince(info.time.updated) >= removeAfterDays) await this.#remove(store, info.id);
      else if (info.time.archived === undefined) await archive(store, info);
    }
  }

  async #remove(store: SessionStore, id: SessionId): Promise<void> {
    try {
      await store.remove(id);
    } catch (thrown) {
      if (!(thrown instanceof UserError)) throw thrown;
      this.#deps.log.info("an old session stays", { sessionId: id, reason: thrown.message });
    }
  }

  /** A snapshot that a running session may still use counts as used, and its age is reset. */
  async #sweepSnapshots(store: SessionStore): Promise<void> {
    const old = new Map<string, string>();
    for (const folder of await listFolders(this.#deps.snapshotFolder)) {
      for await (const path of this.#filesOlderThan(folder, snapshotAgeMs)) {
        old.set(basename(dirname(path)) + basename(path), path);
      }
    }
    if (old.size === 0) return;
    const used = await this.#hashesInUse(store);
    const now = new Date();
    for (const [hash, path] of old) {
      if (this.#closed.signal.aborted) return;
      if (used.has(hash)) await utimes(path, now, now);
      else await rm(path, { force: true });
    }
  }

  async #hashesInUse(store: SessionStore): Promise<Set<string>> {
    const used = new Set<string>();
    // Snapshots are always referenced by hash, whatever the key is named.
    const add = (value: unknown) => {
      for (const [hash] of (JSON.stringify(value) ?? "").matchAll(/\b[0-9a-f]{64}\b/g)) used.add(hash);
    };
    for (const id of await store.sessionIds()) {
      add(await store.load(id));
      add(await store.files.read(["session_diff", id], z.unknown()));
      for await (const { parts } of store.messages(id)) {
        if (this.#closed.signal.aborted) return used;
        add(parts);
      }
    }
    return used;
  }

  /** Lists old regular files directly in the folder, which must not be a link. */
  async *#filesOlderThan(folder: string, ageMs: number): AsyncGenerator<string> {
    for (const [count, { name }] of (await readEntries(folder)).entries()) {
      if (count % filesPerSlice === 0) await yieldToEvents();
      if (this.#closed.signal.aborted) return;
      const path = join(folder, name);
      const found = await statIfExists(path);
      if (found?.isFile() && Date.now() - found.mtimeMs >= ageMs) yield path;
    }
  }
}

const roundKey = ["housekeeping"];
/** Start of the last run, and of the last snapshot search. */
const roundSchema = z.object({ time: z.number(), snapshots: z.number().optional() });

/** A time in the future comes from a clock that was ahead. */
function isWithin(time: number | undefined, spanMs: number): boolean {
  return time !== undefined && Math.abs(Date.now() - time) < spanMs;
}

function daysSince(time: number): number {
  return (Date.now() - time) / dayMs;
}

/** Top-level sessions without use for that many days. */
async function listUnusedSessions(store: SessionStore, days: number): Promise<SessionInfo[]> {
  const found: SessionInfo[] = [];
  let cursor: string | undefined;
  do {
    const page = await store.list({ includeArchived: true, limit: pageSize, ...(cursor && { cursor }) });
    found.push(...page.sessions.filter(({ time }) => daysSince(time.updated) >= days));
    cursor = page.nextCursor;
  } while (cursor !== undefined);
  return found;
}

/** Skips a session that is open, or was used in the meantime. */
async function archive(store: SessionStore, { id, time: { updated } }: SessionInfo): Promise<void> {
  const opened = await store.openSession(id);
  if (opened.status !== "opened") return;
  const info = await store.load(id);
  if (info?.time.updated === updated) {
    opened.writer.saveInfo({ ...info, time: { ...info.time, archived: Date.now() } });
  }
  await opened.writer.close();
}

async function listFolders(folder: string): Promise<string[]> {
  const entries = await readEntries(folder);
  return entries.filter((entry) => entry.isDirectory()).map(({ name }) => join(folder, name));
}

/** Empty if the folder does not exist or is a link. */
async function readEntries(folder: string): Promise<Dirent[]> {
  if (!(await statIfExists(folder))?.isDirectory()) return [];
  return readdir(folder, { withFileTypes: true });
}

/** Undefined if another process removed the file. */
async function statIfExists(path: string) {
  try {
    return await lstat(path);
  } catch (thrown) {
    if (codeOf(thrown) === "ENOENT" || codeOf(thrown) === "ENOTDIR") return undefined;
    throw thrown;
  }
}
