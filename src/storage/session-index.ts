import { sep } from "node:path";
import { setImmediate as breathe } from "node:timers/promises";
import { quickForm } from "../base/form.ts";
import type { Log } from "../base/log.ts";
import { isSessionId, type SessionId } from "../message/ids.ts";
import { type SessionInfo, sessionInfoSchema } from "../message/message.ts";
import { isPlainSession } from "../message/plain.ts";
import type { JsonStore } from "./json-store.ts";
import { RowCache } from "./row-cache.ts";
import { newestFirst, type SessionRow } from "./session-list.ts";

/** How long a list that is asked for page by page stays as it was at its first page. */
const walkMs = 10_000;

/** Files looked at before other work gets its turn. */
const sliceFiles = 2_500;

/** Which sessions there are. The files are the truth: what is known of them only saves reading them again. */
export class SessionIndex {
  readonly #store: JsonStore;
  readonly #projects = new Map<SessionId, string>();
  readonly #known: RowCache;
  /** What this process has written and removed. */
  #changes = 0;
  /** All rows of the last look at all projects. */
  #seen: { rows: SessionRow[]; changes: number; at: number } | undefined;

  constructor(store: JsonStore, log: Log) {
    this.#store = store;
    this.#known = new RowCache(store, log);
  }

  /** For the session's one writer. */
  async save(info: SessionInfo): Promise<void> {
    const key = ["session", info.projectId, info.id];
    await this.#store.write(key, info);
    this.#changes++;
    this.#projects.set(info.id, info.projectId);
    this.#known.addOwn(toRow(info), this.#store.pathOf(key));
  }

  forget(id: SessionId): void {
    this.#changes++;
    this.#projects.delete(id);
    this.#known.forget(id);
  }

  close(): Promise<void> {
    return this.#known.close();
  }

  async load(id: SessionId): Promise<SessionInfo | undefined> {
    if (!isSessionId(id)) return undefined;
    const projectId = this.#projects.get(id) ?? (await this.#findProject(id));
    return projectId === undefined ? undefined : this.#loadFrom(projectId, id);
  }

  /** Whether there is a file of a session whose project is known; what it holds is not looked at. */
  async isStored(id: SessionId): Promise<boolean> {
    const projectId = this.#projects.get(id);
    return projectId !== undefined && this.#store.has(["session", projectId, id]);
  }

  /** The session of a row. */
  async infoOf({ projectId, id }: SessionRow): Promise<SessionInfo | undefined> {
    const path = this.#store.pathOf(["session", projectId, id]);
    const info = this.#store.peek(path, infoForm)?.value;
    return info?.id === id && info.projectId === projectId ? info : this.#loadFrom(projectId, id);
  }

  async #loadFrom(projectId: string, id: SessionId): Promise<SessionInfo | undefined> {
    const info = await this.#store.read(["session", projectId, id], infoForm);
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

  /** All sessions of one project or of all of them, newest first. */
  async rows(projectId?: string): Promise<SessionRow[]> {
    const changes = this.#changes;
    const projects = projectId === undefined ? await this.#projectIds() : [projectId];
    // The names are read while what is known is.
    const listing = Promise.all(projects.map(async (id) => ({ id, files: await this.#filesOf(id) })));
    const [listed] = await Promise.all([listing, this.#known.open()]);
    const rows: SessionRow[] = [];
    for (const { id, files } of listed) rows.push(...(await this.#rowsOf(id, files)));
    rows.sort(newestFirst);
    if (projectId !== undefined) return rows;
    // Nobody waits for that.
    setImmediate(() => this.#known.settle(rows));
    this.#seen = { rows, changes, at: Date.now() };
    return rows;
  }

  /** For a further page: as they were seen a moment ago, or anew. */
  async rowsSeen(projectId?: string): Promise<SessionRow[]> {
    const seen = this.#seen;
    if (projectId !== undefined || seen === undefined) return this.rows(projectId);
    const isFresh = seen.changes === this.#changes && Math.abs(Date.now() - seen.at) < walkMs;
    return isFresh ? seen.rows : this.rows();
  }

  async #rowsOf(projectId: string, files: readonly string[]): Promise<SessionRow[]> {
    const folder = this.#store.folderOf(["session", projectId]);
    const rows: SessionRow[] = [];
    let count = 0;
    for (const file of files) {
      if (++count % sliceFiles === 0) await breathe();
      const id = file.slice(0, -".json".length);
      if (!isSessionId(id)) continue;
      const path = `${folder}${sep}${file}`;
      const row =
        this.#known.find(projectId, id, path) ??
        this.#readRow(projectId, id, path) ??
        (await this.#oddRow(projectId, id));
      if (row) rows.push(row);
    }
    return rows;
  }

  #readRow(projectId: string, id: SessionId, path: string): SessionRow | undefined {
    const held = this.#store.peek(path, infoForm);
    if (held?.value.id !== id || held.value.projectId !== projectId) return undefined;
    const row = toRow(held.value);
    this.#known.add(row, held.stat);
    return row;
  }

  /** A file that is not as it should be is moved aside, with a word. */
  async #oddRow(projectId: string, id: SessionId): Promise<SessionRow | undefined> {
    const found = await this.#store.readOrSkip(["session", projectId, id], sessionInfoSchema);
    const info = await this.#checked(projectId, id, found?.value);
    return info && toRow(info);
  }

  async #findProject(id: SessionId): Promise<string | undefined> {
    for (const projectId of await this.#projectIds()) {
      if (!(await this.#store.has(["session", projectId, id]))) continue;
      this.#projects.set(id, projectId);
      return projectId;
    }
    return undefined;
  }

  async #projectIds(): Promise<string[]> {
    const entries = await this.#store.entries(["session"]);
    return entries.filter((entry) => entry.isFolder).map((entry) => entry.name);
  }

  #filesOf(projectId: string): Promise<string[]> {
    return this.#store.fileNames(["session", projectId]);
  }
}

const infoForm = quickForm(isPlainSession, sessionInfoSchema);

function toRow(info: SessionInfo): SessionRow {
  return {
    id: info.id,
    projectId: info.projectId,
    parentId: info.parentId,
    cwd: info.cwd,
    additionalDirectories: info.additionalDirectories ?? [],
    title: info.title,
    updated: info.time.updated,
    isArchived: info.time.archived !== undefined,
  };
}
