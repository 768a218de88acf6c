import { lstatSync, type Stats } from "node:fs";
import { once } from "../base/async.ts";
import type { Log } from "../base/log.ts";
import type { SessionId } from "../message/ids.ts";
import { Background } from "./json/background.ts";
import type { JsonStore } from "./json/json-store.ts";
import { createGroupsValidator, type Stamp, type StampedRow, toGroups, toRows } from "./row-groups.ts";
import type { SessionRow } from "./session-list.ts";

/** Maximum number of cached rows, about 300 bytes each. Other sessions are read from disk each time. */
const rowsLimit = 20_000;

/** The cache file is rewritten when it lacks this many rows. */
const missingLimit = 100;

/** Delay before the cache file is rewritten, so that many changes cause one write. */
const saveDelayMs = 1_000;

/** A file that changed this recently may change again with the same stamp, because file times are coarse. */
const stampGraceMs = 50;

const key = ["session_list"];
const validator = createGroupsValidator(rowsLimit);

/**
 * Caches the rows of session lists, so that session files are not read for each list.
 * - A row is valid only while its file has the same inode, size and change time. It cannot be stale after a crash or
 *   a change by another process.
 * - The rows are saved in a cache file. A damaged or lost cache file is rewritten.
 */
export class RowCache {
  /** Loads the cache file. */
  readonly open: () => Promise<void>;
  readonly #rows = new Map<SessionId, StampedRow>();
  readonly #saving: Background;
  /** Sessions whose row is missing in the cache file. */
  readonly #missingInFile = new Set<SessionId>();
  /** Whether there is a cache file. */
  #hasFile = false;

  constructor(store: JsonStore, log: Log) {
    this.open = once(async () => {
      const savedRows = toRows(store.peek(store.pathOf(key), validator)?.value ?? []);
      // Rows written in the meantime are newer.
      for (const row of savedRows) if (!this.#rows.has(row.id)) this.#store(row);
      this.#hasFile = savedRows.length > 0;
    });
    const work = async () => {
      await this.open();
      this.#missingInFile.clear();
      this.#hasFile = true;
      await store.write(key, toGroups([...this.#rows.values()]));
    };
    this.#saving = new Background({ name: "saving the session list", work, log });
  }

  /** Returns the row of a file, if the file has not changed. */
  find(projectId: string, id: SessionId, path: string): SessionRow | undefined {
    const row = this.#rows.get(id);
    if (row === undefined || row.projectId !== projectId) return undefined;
    const stat = statOf(path);
    return stat !== undefined && isSame(row, stat) && !isRecent(stat) ? row : undefined;
  }

  /** Returns all cached rows, even if their files have changed or are gone. */
  rows(): SessionRow[] {
    return [...this.#rows.values()];
  }

  /** Caches a row that was read from a file with this stat. */
  add(row: SessionRow, stat: Stats): void {
    if (!isRecent(stat)) this.#addStamped(row, stat);
  }

  /** Caches a row that this process has just written to its file. Saves the cache file after many of these. */
  addOwn(row: SessionRow, path: string): void {
    const stat = statOf(path);
    if (stat !== undefined) this.#addStamped(row, stat);
    if (this.#missingInFile.size >= missingLimit) this.#saving.startWithin(saveDelayMs);
  }

  #addStamped(row: SessionRow, { ino, size, ctimeMs }: Stats): void {
    if (this.#store({ ...row, ino, size, ctimeMs })) this.#missingInFile.add(row.id);
  }

  #store(row: StampedRow): boolean {
    if (this.#rows.size >= rowsLimit && !this.#rows.has(row.id)) return false;
    this.#rows.set(row.id, row);
    return true;
  }

  /**
   * Removes the rows of sessions that are not in the full list. Saves the cache file when enough rows are missing in
   * it.
   */
  settle(all: readonly SessionRow[]): void {
    const presentCount = all.reduce((count, { id }) => (this.#rows.has(id) ? count + 1 : count), 0);
    if (presentCount < this.#rows.size) this.#drop(new Set(all.map(({ id }) => id)));
    if (this.#missingInFile.size >= missingLimit) this.#saving.start();
  }

  forget(id: SessionId): void {
    if (this.#rows.delete(id) && this.#hasFile) this.#saving.startWithin(saveDelayMs);
  }

  /** Resolves when pending writes of the cache file have ended. */
  close(): Promise<void> {
    return this.#saving.settle();
  }

  #drop(ids: ReadonlySet<SessionId>): void {
    for (const id of this.#rows.keys()) if (!ids.has(id)) this.forget(id);
  }
}

function isSame(one: Stamp, other: Stamp): boolean {
  return one.ino === other.ino && one.size === other.size && one.ctimeMs === other.ctimeMs;
}

/** True when a later change of the file might have the same stamp. */
function isRecent({ ctimeMs }: Stamp): boolean {
  return Date.now() - ctimeMs < stampGraceMs;
}

/** Also undefined when access is denied; reading the file then reports why. */
function statOf(path: string): Stats | undefined {
  try {
    return lstatSync(path, { throwIfNoEntry: false });
  } catch {
    return undefined;
  }
}
