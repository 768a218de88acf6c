import { lstatSync, type Stats } from "node:fs";
import { once } from "../base/async.ts";
import type { Log } from "../base/log.ts";
import type { SessionId } from "../message/ids.ts";
import { Background } from "./json/background.ts";
import type { JsonStore } from "./json/json-store.ts";
import { groupsForm, type Stamp, type StampedRow, toGroups, toRows } from "./row-groups.ts";
import type { SessionRow } from "./session-list.ts";

/** About 300 bytes each; further sessions are read from disk each time. */
const rowsLimit = 20_000;

/** The file of rows is written anew when it lacks so many. */
const lackingLimit = 100;

/** The file of rows is written so long after a session came or went: where many do, it is written once. */
const keepDelayMs = 1_000;

/**
 * A file that changed this shortly before it was read may change again without its stamp showing it, because the
 * system's file times are coarse.
 */
const stampGraceMs = 50;

const key = ["session_list"];
const keptForm = groupsForm(rowsLimit);

/**
 * What lists need of sessions, so that their files need not be read for each list. A row counts only while its file
 * has the same inode, size and time of its last change, so nothing can be out of date after a crash or a change by
 * another process. The rows are kept in a file, which is worth nothing but time: one that is damaged or lost is written anew.
 */
export class RowCache {
  /** Reads what was kept. */
  readonly open: () => Promise<void>;
  readonly #rows = new Map<SessionId, StampedRow>();
  readonly #keeping: Background;
  /** Those whose row the file lacks. */
  readonly #lacking = new Set<SessionId>();
  /** Whether there is a file. */
  #isKept = false;

  constructor(store: JsonStore, log: Log) {
    this.open = once(async () => {
      const kept = toRows(store.peek(store.pathOf(key), keptForm)?.value ?? []);
      // What was written meanwhile is newer.
      for (const row of kept) if (!this.#rows.has(row.id)) this.#keep(row);
      this.#isKept = kept.length > 0;
    });
    const work = async () => {
      await this.open();
      this.#lacking.clear();
      this.#isKept = true;
      await store.write(key, toGroups([...this.#rows.values()]));
    };
    this.#keeping = new Background({ name: "keeping the list of sessions", work, log });
  }

  /** The row of a file, if it is still as it was. */
  find(projectId: string, id: SessionId, path: string): SessionRow | undefined {
    const row = this.#rows.get(id);
    if (row === undefined || row.projectId !== projectId) return undefined;
    const stat = statOf(path);
    return stat !== undefined && isSame(row, stat) && !isYoung(stat) ? row : undefined;
  }

  /** All rows as they were last seen, whatever became of their files. */
  rows(): SessionRow[] {
    return [...this.#rows.values()];
  }

  /** Takes what was read from a file that stood like this. */
  add(row: SessionRow, stat: Stats): void {
    if (!isYoung(stat)) this.#take(row, stat);
  }

  /** Takes what this process has just written to a file, which nobody else writes. Keeps the rows where many come so. */
  addOwn(row: SessionRow, path: string): void {
    const stat = statOf(path);
    if (stat !== undefined) this.#take(row, stat);
    if (this.#lacking.size >= lackingLimit) this.#keeping.startWithin(keepDelayMs);
  }

  #take(row: SessionRow, { ino, size, ctimeMs }: Stats): void {
    if (this.#keep({ ...row, ino, size, ctimeMs })) this.#lacking.add(row.id);
  }

  #keep(row: StampedRow): boolean {
    if (this.#rows.size >= rowsLimit && !this.#rows.has(row.id)) return false;
    this.#rows.set(row.id, row);
    return true;
  }

  /** Given all that there are: of a session that is gone nothing is left. Keeps the rows where that has become worth it. */
  settle(all: readonly SessionRow[]): void {
    const there = all.reduce((count, { id }) => (this.#rows.has(id) ? count + 1 : count), 0);
    if (there < this.#rows.size) this.#drop(new Set(all.map(({ id }) => id)));
    if (this.#lacking.size >= lackingLimit) this.#keeping.start();
  }

  forget(id: SessionId): void {
    if (this.#rows.delete(id) && this.#isKept) this.#keeping.startWithin(keepDelayMs);
  }

  /** What is being kept is kept. */
  close(): Promise<void> {
    return this.#keeping.settle();
  }

  #drop(ids: ReadonlySet<SessionId>): void {
    for (const id of this.#rows.keys()) if (!ids.has(id)) this.forget(id);
  }
}

function isSame(one: Stamp, other: Stamp): boolean {
  return one.ino === other.ino && one.size === other.size && one.ctimeMs === other.ctimeMs;
}

/** Whether it cannot be told from its successor yet. */
function isYoung({ ctimeMs }: Stamp): boolean {
  return Date.now() - ctimeMs < stampGraceMs;
}

/** Undefined also where it may not be asked for: reading the file then says why. */
function statOf(path: string): Stats | undefined {
  try {
    return lstatSync(path, { throwIfNoEntry: false });
  } catch {
    return undefined;
  }
}
