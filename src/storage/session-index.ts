import { lstatSync } from "node:fs";
import type { Stats } from "node:fs";
import { sep } from "node:path";
import { setImmediate as breathe } from "node:timers/promises";
import { quickForm } from "../base/form.ts";
import { isSessionId, type SessionId } from "../message/ids.ts";
import { type SessionInfo, sessionInfoSchema } from "../message/message.ts";
import type { JsonStore } from "./json-store.ts";
import type { SessionRow } from "./session-list.ts";

interface CachedRow {
  row: SessionRow;
  /** Of the file that the row was read from. */
  stamp: string;
}

/** Rows kept in memory, about 300 bytes each; further sessions are read from disk each time. */
const cachedRowsLimit = 20_000;

/** Files looked at before other work gets its turn. */
const sliceFiles = 250;

/**
 * A file that changed this shortly before it was read may change again without its stamp showing it, because the
 * system's file times are coarse.
 */
const stampGraceMs = 50;

/**
 * Which sessions there are. The files are the truth: memory only saves reading those again whose inode, size and
 * times are the same, so nothing can be out of date after a crash or a change by another process.
 */
export class SessionIndex {
  readonly #store: JsonStore;
  readonly #projects = new Map<SessionId, string>();
  readonly #rows = new Map<SessionId, CachedRow>();

  constructor(store: JsonStore) {
    this.#store = store;
  }

  add(info: SessionInfo): void {
    this.#projects.set(info.id, info.projectId);
  }

  forget(id: SessionId): void {
    this.#projects.delete(id);
    this.#rows.delete(id);
  }

  async load(id: SessionId): Promise<SessionInfo | undefined> {
    if (!isSessionId(id)) return undefined;
    const projectId = this.#projects.get(id) ?? (await this.#findProject(id));
    return projectId === undefined ? undefined : this.loadFrom(projectId, id);
  }

  /** Whether there is a file of a session whose project is known; what it holds is not looked at. */
  async isStored(id: SessionId): Promise<boolean> {
    const projectId = this.#projects.get(id);
    return projectId !== undefined && this.#store.has(["session", projectId, id]);
  }

  async loadFrom(projectId: string, id: SessionId): Promise<SessionInfo | undefined> {
    const info = await this.#store.read(["session", projectId, id], sessionInfoSchema);
    return this.#checked(projectId, id, info);
  }

  async #checked(
    projectId: string,
    id: SessionId,
    info: SessionInfo | undefined,
  ): Promise<SessionInfo | undefined> {
    if (info && info.id === id && info.projectId === projectId) return info;
    if (info)
      await this.#store.quarantine(
        this.#store.pathOf(["session", projectId, id]),
        "belongs to another session",
      );
    this.forget(id);
    return undefined;
  }

  /** All sessions of one project or of all of them. */
  async rows(projectId?: string): Promise<SessionRow[]> {
    const projects = projectId === undefined ? await this.#projectIds() : [projectId];
    const rows: SessionRow[] = [];
    for (const project of projects) rows.push(...(await this.#rowsOf(project)));
    return rows;
  }

  async #rowsOf(projectId: string): Promise<SessionRow[]> {
    const folder = this.#store.folderOf(["session", projectId]);
    const rows: SessionRow[] = [];
    for (const [count, id] of (await this.#idsOf(projectId)).entries()) {
      if (count % sliceFiles === sliceFiles - 1) await breathe();
      const path = `${folder}${sep}${id}.json`;
      const row =
        this.#cachedRow(id, path) ??
        this.#readRow(projectId, id, path) ??
        (await this.#oddRow(projectId, id));
      if (row) rows.push(row);
    }
    return rows;
  }

  #cachedRow(id: SessionId, path: string): SessionRow | undefined {
    const cached = this.#rows.get(id);
    return cached && cached.stamp === stampOf(statOf(path)) ? cached.row : undefined;
  }

  #readRow(projectId: string, id: SessionId, path: string): SessionRow | undefined {
    const { value, stat } = this.#store.peek(path, listedForm) ?? {};
    if (value?.id !== id || value.projectId !== projectId) return undefined;
    const row = toRow(value);
    const stamp = stampOf(stat);
    if (stamp !== undefined && this.#rows.size < cachedRowsLimit) this.#rows.set(id, { row, stamp });
    return row;
  }

  /** A file that is not as it should be is moved aside, with a word. */
  async #oddRow(projectId: string, id: SessionId): Promise<SessionRow | undefined> {
    const found = await this.#store.readOrSkip(["session", projectId, id], sessionInfoSchema);
    const info = await this.#checked(projectId, id, found?.value);
    return info && toRow(info);
  }

  async #findProject(id: SessionId): Promise<string | undefined> {
    for (const projectId of await this.#projectIds()) await this.#idsOf(projectId);
    return this.#projects.get(id);
  }

  async #projectIds(): Promise<string[]> {
    const entries = await this.#store.entries(["session"]);
    return entries.filter((entry) => entry.isFolder).map((entry) => entry.name);
  }

  async #idsOf(projectId: string): Promise<SessionId[]> {
    const entries = await this.#store.entries(["session", projectId]);
    const ids: SessionId[] = [];
    for (const { name, isFolder } of entries) {
      if (isFolder || !isSessionId(name)) continue;
      ids.push(name);
      this.#projects.set(name, projectId);
    }
    return ids;
  }
}

/** Undefined while the file is too young to be told from its successor. */
function stampOf(stat: Stats | undefined): string | undefined {
  if (!stat || Date.now() - stat.ctimeMs < stampGraceMs) return undefined;
  return `${stat.ino} ${stat.size} ${stat.mtimeMs} ${stat.ctimeMs}`;
}

/** Undefined also where it may not be asked for: reading the file then says why. */
function statOf(path: string) {
  try {
    return lstatSync(path, { throwIfNoEntry: false });
  } catch {
    return undefined;
  }
}

/** What a list needs of a session. The rest is looked at with the page that shows it. */
type Listed = Pick<SessionInfo, "id" | "projectId" | "parentId" | "cwd" | "time">;

const listedForm = quickForm<Listed>(isListed, sessionInfoSchema);

function isListed(value: unknown): value is Listed {
  if (!isFields(value) || !isFields(value.time)) return false;
  const { id, projectId, parentId, cwd } = value;
  const { created, updated, archived } = value.time;
  return (
    isSessionId(id) &&
    typeof projectId === "string" &&
    (parentId === undefined || isSessionId(parentId)) &&
    typeof cwd === "string" &&
    typeof created === "number" &&
    typeof updated === "number" &&
    (archived === undefined || typeof archived === "number")
  );
}

function isFields(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null;
}

function toRow(info: Listed): SessionRow {
  return {
    id: info.id,
    projectId: info.projectId,
    parentId: info.parentId,
    cwd: info.cwd,
    updated: info.time.updated,
    isArchived: info.time.archived !== undefined,
  };
}
