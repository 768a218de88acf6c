import { rm } from "node:fs/promises";
import { isDeepStrictEqual } from "node:util";
import { z } from "zod";
import { UserError } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import type { SessionId } from "../message/ids.ts";
import { type Message, type SessionInfo, type Todo, todoSchema } from "../message/message.ts";
import { withStoreErrors } from "./json/disk-error.ts";
import { Journal } from "./journal.ts";
import { JsonStore } from "./json/json-store.ts";
import { type HeldLease, LazyLease } from "./json/lazy-lease.ts";
import { acquireStoreLease, findHolder } from "./json/lock.ts";
import { migrate } from "./json/migrations.ts";
import type { SessionPlace } from "./rebuilt-session.ts";
import { SessionIndex } from "./session-index.ts";
import { type SessionPage, type SessionQuery, type SessionRow, toPage } from "./session-list.ts";
import { SessionWriter, type SessionWriterOptions } from "./session-writer.ts";
import type { StoreDamage } from "./store-check.ts";
import { StoredMessages } from "./stored-messages.ts";

export { InvalidCursor } from "./session-list.ts";
export type { SessionWriter } from "./session-writer.ts";

const todosSchema = z.array(todoSchema);

export type OpenedSession =
  /**
   * `info` is the current session info. `wasLeft`: its last writer ended without closing it. `notice` tells users
   * that it was rebuilt.
   */
  | {
      status: "opened";
      info: SessionInfo;
      writer: SessionWriter;
      wasLeft: boolean;
      notice: string | undefined;
    }
  | { status: "missing" }
  /** Another process, or another part of this one, is writing it. */
  | { status: "busy"; pid?: number };

/** Sessions on disk. Reading needs no lease; to write, use {@link SessionStore.openSession}. */
export class SessionStore {
  /**
   * Files that do not belong to one session: `project/<projectId>`, `permission/<projectId>`,
   * `session_diff/<sessionId>`, `session_prompt/<sessionId>`.
   */
  readonly files: JsonStore;
  readonly #log: Log;
  readonly #index: SessionIndex;
  readonly #messages: StoredMessages;

  /** Creates or migrates the store. Reads no session. `onWarning` receives sentences for the user. */
  static async open(options: {
    root: string;
    log: Log;
    onWarning?: (warning: string) => void;
  }): Promise<SessionStore> {
    const { root, log, onWarning } = options;
    const files = new JsonStore({
      root,
      log,
      onQuarantine: (path, reason) =>
        onWarning?.(`${path} could not be read (${reason}). It was renamed to .corrupt in the same folder.`),
    });
    await migrate(files, log);
    await files.removeTemporaries();
    return new SessionStore(files, log);
  }

  private constructor(files: JsonStore, log: Log) {
    this.files = files;
    this.#log = log;
    this.#messages = new StoredMessages({ store: files, log });
    this.#index = new SessionIndex({ store: files, messages: this.#messages, log });
  }

  async create(info: SessionInfo): Promise<void> {
    await this.#index.save(info);
  }

  /** Finishes background writes. The owners of open sessions must close them first. */
  close(): Promise<void> {
    return this.#index.close();
  }

  /**
   * Creates a session on disk and opens it. The lease is acquired later, with {@link SessionWriter.claim} or before
   * the next write: loading the native lock is slow, and nobody else can open the session until its id is sent.
   */
  async createAndOpen(info: SessionInfo): Promise<SessionWriter> {
    await this.create(info);
    const { id } = info;
    const lease = new LazyLease(() => this.#acquireLeaseOfNew(id));
    const journal = this.#createJournal(id, 0, lease);
    return this.#createWriter({ info, journal, seq: 0, lease });
  }

  /**
   * Loads a session. `wanted` is the place where the client wants to open it, for a session that has lost its own
   * file and its folder.
   */
  load(id: SessionId, wanted?: SessionPlace): Promise<SessionInfo | undefined> {
    return this.#index.load(id, wanted);
  }

  /** True when anything of a session without its own file is stored. */
  hasTraces(id: SessionId): Promise<boolean> {
    return this.#index.hasTraces(id);
  }

  /** Returns a page of sessions: newest update first, then by id. Throws `InvalidCursor`. */
  async list(query: SessionQuery): Promise<SessionPage<SessionInfo>> {
    const { sessions: rows, ...more } = await this.listRows(query);
    const sessions: SessionInfo[] = [];
    for (const row of rows) {
      const info = await this.#index.infoOf(row);
      if (info) sessions.push(info);
    }
    return { sessions, ...more };
  }

  /** Like {@link list} for rows. Reads no session file that has not changed. */
  async listRows(query: SessionQuery): Promise<SessionPage<SessionRow>> {
    const { projectId, cursor } = query;
    const rows = cursor === undefined ? this.#index.rows(projectId) : this.#index.rowsForNextPage(projectId);
    return toPage(await rows, query);
  }

  /** Reads all session files and the other small files, and reports damage. */
  async findDamage(): Promise<StoreDamage> {
    const { readSmallFiles, findAside } = await import("./store-check.ts");
    await readSmallFiles(this.files);
    const ids = await this.sessionIds();
    const rebuilt = ids.filter((id) => this.#index.rebuilt(id) !== undefined);
    const unplaced = await this.#index.unplaced();
    return { aside: await findAside(this.files.root), rebuilt, unplaced };
  }

  /** Whether a process has the session open and its newest turn has no end. */
  async isRunning(id: SessionId): Promise<boolean> {
    if ((await findHolder(this.#lockPath(id))) === undefined) return false;
    for await (const { info } of this.messagesFromNewest(id))
      return info.role === "user" || info.time.completed === undefined || info.finish === "tool-calls";
    return false;
  }

  /** Returns all sessions, including child and archived ones. */
  async sessionIds(): Promise<SessionId[]> {
    return (await this.#index.rows()).map(({ id }) => id);
  }

  /** Removes a session with its children and all of their files. Does nothing for an unknown session. */
  async remove(id: SessionId): Promise<void> {
    const family = await this.#family(id);
    const releases: (() => Promise<void>)[] = [];
    try {
      for (const row of family) releases.push(await this.#acquireForRemoval(row.id));
      for (const row of family.reverse()) await this.#removeOne(row);
    } finally {
      for (const release of releases) await release();
    }
  }

  /** Yields messages, oldest first. Messages in `known` are not read. */
  messages(id: SessionId, known: readonly Message[] = []): AsyncIterable<Message> {
    return this.#messages.read(id, "oldest", new Map(known.map((message) => [message.info.id, message])));
  }

  /** Yields messages, newest first, read on demand. */
  messagesFromNewest(id: SessionId): AsyncIterable<Message> {
    return this.#messages.read(id, "newest");
  }

  async todos(id: SessionId): Promise<Todo[]> {
    return (await this.files.read(["todo", id], todosSchema)) ?? [];
  }

  /** Acquires the session's lease and recovers what a killed writer left. */
  async openSession(id: SessionId): Promise<OpenedSession> {
    if (!(await this.load(id))) return { status: "missing" };
    const lease = await acquireStoreLease(this.files, id);
    if (lease.status === "busy") return lease;
    try {
      const info = await this.load(id);
      if (info) return { status: "opened", ...(await this.#openWriter(info, lease)), wasLeft: lease.wasLeft };
      await lease.release();
      return { status: "missing" };
    } catch (thrown) {
      await lease.release();
      throw thrown;
    }
  }

  async #openWriter(stored: SessionInfo, held: HeldLease) {
    const { id } = stored;
    const lease = LazyLease.of(held);
    const rebuilt = this.#index.rebuilt(id);
    const { seq, isCut, session } = await this.#messages.recover(id);
    const info = session ?? stored;
    if (rebuilt !== undefined || !isDeepStrictEqual(info, stored)) await this.#index.save(info);
    const journal = this.#createJournal(id, seq, lease);
    if (!isCut) await journal.replace(() => ({ seq, changes: [{ type: "session", seq, info }] }));
    const writer = this.#createWriter({ info, journal, seq, lease });
    return { info, writer, notice: rebuilt && rebuiltNotice(rebuilt.isComplete) };
  }

  #createWriter(session: Pick<SessionWriterOptions, "info" | "journal" | "seq" | "lease">): SessionWriter {
    const saveInfo = (info: SessionInfo) => this.#index.save(info);
    return new SessionWriter({ ...session, store: this.files, log: this.#log, saveInfo });
  }

  #createJournal(id: SessionId, startSeq: number, lease: LazyLease): Journal {
    return new Journal({
      path: this.#messages.journalPath(id),
      temporaryFolder: this.files.temporaryFolder,
      startSeq,
      log: this.#log,
      ready: () => lease.take(),
    });
  }

  async #acquireLeaseOfNew(id: SessionId): Promise<HeldLease> {
    const lease = await acquireStoreLease(this.files, id);
    if (lease.status === "busy") throw new UserError(`The session ${id} is open in ${holderOf(lease)}.`);
    try {
      if (await this.#index.isStored(id)) return lease;
      throw new UserError(`The session ${id} was removed in the meantime.`);
    } catch (thrown) {
      await lease.release();
      throw thrown;
    }
  }

  /** Returns the session and its descendants, parents before children. */
  async #family(id: SessionId): Promise<SessionRow[]> {
    const rows = await this.#index.rows();
    const family = rows.filter((row) => row.id === id);
    for (const member of family) {
      family.push(...rows.filter((row) => row.parentId === member.id && !family.includes(row)));
    }
    return family;
  }

  async #acquireForRemoval(id: SessionId): Promise<() => Promise<void>> {
    const lease = await acquireStoreLease(this.files, id);
    if (lease.status === "held") return lease.release;
    throw new UserError(
      `Session ${id} cannot be removed while ${holderOf(lease)} has it open. Close it there and try again.`,
    );
  }

  /** Removes one session. Its own file goes last, so that an interrupted removal can be repeated. */
  async #removeOne({ id, projectId }: SessionRow): Promise<void> {
    await this.files.removeAll(["message", id]);
    await this.files.remove(["todo", id]);
    await this.files.remove(["session_diff", id]);
    await this.files.remove(["session_prompt", id]);
    for (const path of [this.#messages.journalPath(id), this.#lockPath(id)]) {
      await withStoreErrors(path, () => rm(path, { force: true, recursive: true }));
    }
    await this.files.removeWithAsides(["session", projectId, id]);
    this.#index.forget(id);
  }

  #lockPath(id: SessionId): string {
    return this.files.pathOf(["lock", id], ".lock");
  }
}

function rebuiltNotice(isComplete: boolean): string {
  const start = "The file of this session was damaged or missing. It was rebuilt from the session's";
  return isComplete
    ? `${start} journal: nothing is lost.`
    : `${start} messages. Its approvals, its approval setting and a title that you gave it may be lost.`;
}

function holderOf({ pid }: { pid?: number }): string {
  return pid === undefined ? "another process" : `process ${pid}`;
}
