import { existsSync } from "node:fs";
import { sep } from "node:path";
import { setImmediate as yieldToEventLoop } from "node:timers/promises";
import checks from "../../schema/checks.json" with { type: "json" };
import { generatedCheck } from "../base/json-schema.ts";
import { fastValidator } from "../base/validator.ts";
import type { Log } from "../base/log.ts";
import { isSessionId, type SessionId } from "../message/ids.ts";
import { type SessionInfo, sessionInfoSchema } from "../message/message.ts";
import type { JsonStore } from "./json/json-store.ts";
import type { RebuiltSession, SessionPlace } from "./rebuilt-session.ts";
import { RowCache } from "./row-cache.ts";
import { newestFirst, type SessionRow } from "./session-list.ts";
import type { StoredMessages } from "./stored-messages.ts";

/** How long the pages of a list show it as it was at the first page. */
const listLifetimeMs = 10_000;

/** Files checked before other work runs. */
const filesPerSlice = 2_500;

/**
 * Index of all sessions. The files are authoritative; cached data only saves reading them. A session whose own file
 * is damaged or missing is rebuilt in memory from its other files: only its writer may store it.
 */
export class SessionIndex {
  readonly #store: JsonStore;
  readonly #messages: StoredMessages;
  readonly #log: Log;
  readonly #projects = new Map<SessionId, string>();
  readonly #cache: RowCache;
  readonly #rebuilt = new Map<SessionId, RebuiltSession>();
  /** Whether the message folders were searched for sessions without a file. */
  #isSearched = false;
  /** Number of writes and removals by this process. */
  #changes = 0;
  /** All rows of the last listing of all projects. */
  #lastListing: { rows: SessionRow[]; changes: number; at: number } | undefined;

  constructor({ store, messages, log }: { store: JsonStore; messages: StoredMessages; log: Log }) {
    this.#store = store;
    this.#messages = messages;
    this.#log = log;
    this.#cache = new RowCache(store, log);
  }

  /** Stores a session. Only its one writer may call this. */
  async save(info: SessionInfo): Promise<void> {
    const key = ["session", info.projectId, info.id];
    await this.#store.write(key, info);
    this.#changes++;
    this.#projects.set(info.id, info.projectId);
    this.#rebuilt.delete(info.id);
    this.#cache.addOwn(toRow(info), this.#store.pathOf(key));
  }

  forget(id: SessionId): void {
    this.#changes++;
    this.#projects.delete(id);
    this.#rebuilt.delete(id);
    this.#cache.forget(id);
  }

  /** Returns a rebuilt session whose own file is not stored yet. */
  rebuilt(id: SessionId): RebuiltSession | undefined {
    return this.#rebuilt.get(id);
  }

  close(): Promise<void> {
    return this.#cache.close();
  }

  /**
   * Loads a session. `wanted` is the place where the client wants to open it, for a session that has lost its
   * folder.
   */
  async load(id: SessionId, wanted?: SessionPlace): Promise<SessionInfo | undefined> {
    if (!isSessionId(id)) return undefined;
    const projectId = this.#projects.get(id) ?? (await this.#findProject(id));
    return projectId === undefined
      ? this.#rebuild(id, undefined, wanted)
      : this.#loadFrom(projectId, id, wanted);
  }

  /** True when a session of a known project has a file. Does not read it. */
  async isStored(id: SessionId): Promise<boolean> {
    const projectId = this.#projects.get(id);
    return projectId !== undefined && this.#store.has(["session", projectId, id]);
  }

  /** Loads the session of a row. */
  async infoOf({ projectId, id }: SessionRow): Promise<SessionInfo | undefined> {
    const path = this.#store.pathOf(["session", projectId, id]);
    const info = this.#store.peek(path, infoValidator)?.value;
    return info?.id === id && info.projectId === projectId ? info : this.#loadFrom(projectId, id);
  }

  async #loadFrom(projectId: string, id: SessionId, wanted?: SessionPlace): Promise<SessionInfo | undefined> {
    const info = await this.#store.read(["session", projectId, id], infoValidator);
    return (await this.#checked(projectId, id, info)) ?? this.#rebuild(id, projectId, wanted);
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
    return undefined;
  }

  async #rebuild(
    id: SessionId,
    folder: string | undefined,
    wanted?: SessionPlace,
  ): Promise<SessionInfo | undefined> {
    const before = this.#rebuilt.get(id);
    if (before !== undefined && (await this.hasTraces(id))) return before.info;
    this.#rebuilt.delete(id);
    await this.#cache.open();
    const { rebuildSession } = await import("./rebuilt-session.ts");
    const rows = this.#cache.rows().sort(newestFirst);
    const rebuilt = await rebuildSession({
      id,
      projectId: folder ?? (await this.#findAside(id)),
      projectIds: await this.#projectIds(),
      journal: await this.#messages.sessionOf(id),
      rows,
      messages: this.#messages.read(id, "oldest"),
      childCost: await this.#costOf(rows.filter(({ parentId }) => parentId === id)),
      wanted,
    });
    if (rebuilt === undefined) {
      this.#projects.delete(id);
      return undefined;
    }
    this.#log.warn("session without its own file rebuilt", { sessionId: id, complete: rebuilt.isComplete });
    this.#rebuilt.set(id, rebuilt);
    return rebuilt.info;
  }

  /** Returns sessions with messages that are not in the list, because their folder is unknown. */
  async unplaced(): Promise<SessionId[]> {
    const listed = new Set((await this.rows()).map(({ id }) => id));
    const unplaced: SessionId[] = [];
    for (const id of await this.#idsWithMessages()) {
      if (!listed.has(id) && (await this.#store.names(["message", id])).length > 0) unplaced.push(id);
    }
    return unplaced;
  }

  /** True when anything of a session without its own file is stored. */
  async hasTraces(id: SessionId): Promise<boolean> {
    if (existsSync(this.#store.folderOf(["message", id]))) return true;
    return existsSync(this.#messages.journalPath(id)) || (await this.#findAside(id)) !== undefined;
  }

  async #costOf(rows: readonly SessionRow[]): Promise<number> {
    let cost = 0;
    for (const row of rows) cost += (await this.infoOf(row))?.cost ?? 0;
    return cost;
  }

  /** Returns all sessions of one project or of all projects, newest first. */
  async rows(projectId?: string): Promise<SessionRow[]> {
    const changes = this.#changes;
    const projects = projectId === undefined ? await this.#projectIds() : [projectId];
    // Read before the session files: a session created in the meantime would look as if it had no file.
    const withMessages = projectId === undefined && !this.#isSearched ? this.#idsWithMessages() : [];
    // Lists the files while the cache file loads.
    const listing = Promise.all(projects.map(async (id) => ({ id, files: await this.#filesOf(id) })));
    const [ids, listed] = await Promise.all([withMessages, listing, this.#cache.open()]);
    const rows: SessionRow[] = [];
    for (const { id, files } of listed) rows.push(...(await this.#rowsOf(id, files)));
    rows.push(...(await this.#rowsWithoutFile(ids, rows, projectId)));
    rows.sort(newestFirst);
    if (projectId !== undefined) return rows;
    // After the response, because no caller waits for it.
    setImmediate(() => this.#cache.settle(rows));
    this.#lastListing = { rows, changes, at: Date.now() };
    return rows;
  }

  /** Returns the rows for a further page: those of the first page while they are fresh, otherwise a new listing. */
  async rowsForNextPage(projectId?: string): Promise<SessionRow[]> {
    const listing = this.#lastListing;
    if (projectId !== undefined || listing === undefined) return this.rows(projectId);
    const isFresh = listing.changes === this.#changes && Math.abs(Date.now() - listing.at) < listLifetimeMs;
    return isFresh ? listing.rows : this.rows();
  }

  async #rowsOf(projectId: string, files: readonly string[]): Promise<SessionRow[]> {
    const folder = this.#store.folderOf(["session", projectId]);
    const rows: SessionRow[] = [];
    let count = 0;
    for (const file of files) {
      if (++count % filesPerSlice === 0) await yieldToEventLoop();
      const id = file.slice(0, -".json".length);
      if (!isSessionId(id)) continue;
      const path = `${folder}${sep}${file}`;
      const row =
        this.#cache.find(projectId, id, path) ??
        this.#readRow(projectId, id, path) ??
        (await this.#rebuildRow(projectId, id));
      if (row) rows.push(row);
    }
    return rows;
  }

  #readRow(projectId: string, id: SessionId, path: string): SessionRow | undefined {
    const held = this.#store.peek(path, infoValidator);
    if (held?.value.id !== id || held.value.projectId !== projectId) return undefined;
    const row = toRow(held.value);
    this.#cache.add(row, held.stat);
    return row;
  }

  /** Reads an invalid file, which moves it aside with a warning, and rebuilds its session. */
  async #rebuildRow(projectId: string, id: SessionId): Promise<SessionRow | undefined> {
    const found = await this.#store.readOrSkip(["session", projectId, id], sessionInfoSchema);
    const info = (await this.#checked(projectId, id, found?.value)) ?? (await this.#rebuild(id, projectId));
    return info && toRow(info);
  }

  /** Returns sessions that have messages but no session file, or had none at the last search. */
  async #rowsWithoutFile(
    ids: readonly SessionId[],
    rows: readonly SessionRow[],
    projectId: string | undefined,
  ): Promise<SessionRow[]> {
    const candidates = new Set([...ids, ...this.#rebuilt.keys()]);
    for (const { id } of rows) candidates.delete(id);
    const found: SessionRow[] = [];
    for (const id of candidates) {
      const info = await this.load(id);
      if (info !== undefined && (projectId ?? info.projectId) === info.projectId) found.push(toRow(info));
    }
    if (projectId === undefined) this.#isSearched = true;
    return found;
  }

  async #idsWithMessages(): Promise<SessionId[]> {
    return (await this.#store.folderNames(["message"])).filter(isSessionId);
  }

  /** Returns the project in whose folder a damaged file of the session was moved aside. */
  async #findAside(id: SessionId): Promise<string | undefined> {
    for (const projectId of await this.#projectIds()) {
      if (await this.#store.hasAside(["session", projectId, id])) return projectId;
    }
    return undefined;
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

const infoValidator = fastValidator(generatedCheck(checks, "session"), sessionInfoSchema);

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
