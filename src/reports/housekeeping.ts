import { errorFields } from "../base/error-fields.ts";
import type { Dirent } from "node:fs";
import { lstat, readdir, rm, utimes } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { setImmediate as breathe } from "node:timers/promises";
import { z } from "zod";
import { codeOf, UserError } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import type { SessionId } from "../message/ids.ts";
import type { SessionInfo } from "../message/message.ts";
import { acquireStoreLease } from "../storage/json/lock.ts";
import type { SessionStore } from "../storage/session-store.ts";

const hourMs = 3_600_000;
const dayMs = 24 * hourMs;

/** Between two rounds, over all processes of one store. */
const roundEveryMs = hourMs;
/** Between two searches for contents that nobody refers to, which read every session. */
const snapshotsEveryMs = 7 * dayMs;
/** After a turn's answer, so that the round does not compete with it. */
const roundDelayMs = 2_000;
/** Whole outputs of tools are kept so long (system.md 5). */
const outputAgeMs = 7 * dayMs;
/** Contents of changed files are kept at least so long after they were last known to be used. */
const snapshotAgeMs = 30 * dayMs;
/** Files looked at before other work gets its turn. */
const sliceFiles = 64;
/** Sessions read from the list at a time. */
const pageSize = 500;

export interface HousekeepingDeps {
  store(): Promise<SessionStore>;
  /** Where the whole of what was cut for the model is kept. */
  outputFolder: string;
  /** Where the contents of changed files are kept, as `<first two digits of the hash>/<the rest>`. */
  snapshotFolder: string;
  ages(): Promise<SessionAges>;
  log: Log;
}

/** Days without use after which a session is put away; undefined is never. */
export interface SessionAges {
  archiveAfterDays: number | undefined;
  removeAfterDays: number | undefined;
}

/**
 * Removes what nobody will ask for again. Nothing runs and no timer waits until a turn has ended and a round is due;
 * of several processes one does the round.
 */
export class Housekeeping {
  readonly #deps: HousekeepingDeps;
  readonly #closed = new AbortController();
  #nextMs = 0;
  #timer: NodeJS.Timeout | undefined;
  #round: Promise<void> = Promise.resolve();

  constructor(deps: HousekeepingDeps) {
    this.#deps = deps;
  }

  /** Costs a comparison unless a round is due. */
  onTurnEnd(): void {
    const now = Date.now();
    // A clock that was set back must not put the next round off for long.
    if (now < this.#nextMs && this.#nextMs - now <= roundEveryMs) return;
    this.#nextMs = now + roundEveryMs;
    this.#timer = setTimeout(() => {
      this.#round = this.#runBehind();
    }, roundDelayMs);
    this.#timer.unref();
  }

  /** A round, unless another process did one within the hour or does one now. Answers whether it was done. */
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

  /** Ends a round at its next file. */
  async close(): Promise<void> {
    clearTimeout(this.#timer);
    this.#closed.abort();
    await this.#round;
  }

  async #runBehind(): Promise<void> {
    try {
      await this.runIfDue();
    } catch (thrown) {
      this.#deps.log.warn("housekeeping failed", errorFields(thrown));
    }
  }

  async #runRound(store: SessionStore, sweepsSnapshots: boolean): Promise<void> {
    const steps = [
      () => this.#sweepOutputs(),
      () => this.#putSessionsAway(store),
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

  async #putSessionsAway(store: SessionStore): Promise<void> {
    const { archiveAfterDays = Infinity, removeAfterDays = Infinity } = await this.#deps.ages();
    if (archiveAfterDays === Infinity && removeAfterDays === Infinity) return;
    for (const info of await sessionsOf(store, Math.min(archiveAfterDays, removeAfterDays))) {
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

  /** A content that a session of the same time may still show or undo counts as used, and is young again. */
  async #sweepSnapshots(store: SessionStore): Promise<void> {
    const old = new Map<string, string>();
    for (const folder of await foldersIn(this.#deps.snapshotFolder)) {
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
    // Every place that names a content does so by its hash, whatever the place is called.
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

  /** Regular files directly in the folder, which must be no link. */
  async *#filesOlderThan(folder: string, ageMs: number): AsyncGenerator<string> {
    for (const [count, { name }] of (await entriesOf(folder)).entries()) {
      if (count % sliceFiles === 0) await breathe();
      if (this.#closed.signal.aborted) return;
      const path = join(folder, name);
      const found = await statOf(path);
      if (found?.isFile() && Date.now() - found.mtimeMs >= ageMs) yield path;
    }
  }
}

const roundKey = ["housekeeping"];
/** When the last round began, and the last one that looked at the snapshots. */
const roundSchema = z.object({ time: z.number(), snapshots: z.number().optional() });

/** A time to come is one of a clock that was ahead. */
function isWithin(time: number | undefined, spanMs: number): boolean {
  return time !== undefined && Math.abs(Date.now() - time) < spanMs;
}

function daysSince(time: number): number {
  return (Date.now() - time) / dayMs;
}

/** Sessions without a parent that nobody used for so many days. */
async function sessionsOf(store: SessionStore, days: number): Promise<SessionInfo[]> {
  const found: SessionInfo[] = [];
  let cursor: string | undefined;
  do {
    const page = await store.list({ includeArchived: true, limit: pageSize, ...(cursor && { cursor }) });
    found.push(...page.sessions.filter(({ time }) => daysSince(time.updated) >= days));
    cursor = page.nextCursor;
  } while (cursor !== undefined);
  return found;
}

/** Left as it is while somebody has it open, or when somebody used it meanwhile. */
async function archive(store: SessionStore, { id, time: { updated } }: SessionInfo): Promise<void> {
  const opened = await store.openSession(id);
  if (opened.status !== "opened") return;
  const info = await store.load(id);
  if (info?.time.updated === updated) {
    opened.writer.saveInfo({ ...info, time: { ...info.time, archived: Date.now() } });
  }
  await opened.writer.close();
}

async function foldersIn(folder: string): Promise<string[]> {
  const entries = await entriesOf(folder);
  return entries.filter((entry) => entry.isDirectory()).map(({ name }) => join(folder, name));
}

/** None where there is no folder, or a link in its place. */
async function entriesOf(folder: string): Promise<Dirent[]> {
  if (!(await statOf(folder))?.isDirectory()) return [];
  return readdir(folder, { withFileTypes: true });
}

/** Undefined for what another process removed meanwhile. */
async function statOf(path: string) {
  try {
    return await lstat(path);
  } catch (thrown) {
    if (codeOf(thrown) === "ENOENT" || codeOf(thrown) === "ENOTDIR") return undefined;
    throw thrown;
  }
}
