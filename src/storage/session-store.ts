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
import { acquireStoreLease } from "./json/lock.ts";
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
   * `info` is what is known of it by now; `wasLeft` says that its last writer ended without closing it; `notice` tells
   * the person that it was rebuilt.
   */
  | {
      status: "opened";
      info: SessionInfo;
      writer: SessionWriter;
      wasLeft: boolean;
      notice: string | undefined;
    }
  | { status: "missing" }
  /** Another process, or another place in this one, writes it. */
  | { status: "busy"; pid?: number };

/** Sessions on disk. Anyone may read; to write, {@link SessionStore.openSession}. */
export class SessionStore {
  /** The files that are no session's: `project/<projectId>`, `permission/<projectId>`, `session_diff/<sessionId>`. */
  readonly files: JsonStore;
  readonly #log: Log;
  readonly #index: SessionIndex;
  readonly #messages: StoredMessages;

  /** Makes or migrates the store and looks at no session. `onWarning` gets what a person should know, as sentences. */
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
        onWarning?.(`${path} could not be read (${reason}). It was kept beside its place as .corrupt.`),
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

  /** Ends what is written behind; its sessions are closed by whoever opened them. */
  close(): Promise<void> {
    return this.#index.close();
  }

  /**
   * Creates a session and opens it. It is on disk then; its lease is taken with {@link SessionWriter.claim} or before
   * anything else is written, because loading the native lock takes longer than all of this, and until the id is told
   * nobody else can ask for it.
   */
  async begin(info: SessionInfo): Promise<SessionWriter> {
    await this.create(info);
    const { id } = info;
    const lease = new LazyLease(() => this.#leaseOfBegun(id));
    const journal = this.#journalOf(id, 0, lease);
    return this.#writerOf({ info, journal, seq: 0, lease });
  }

  /** `wanted` is where the client wants to open it, for a session that has lost its own file and its folder. */
  load(id: SessionId, wanted?: SessionPlace): Promise<SessionInfo | undefined> {
    return this.#index.load(id, wanted);
  }

  /** Whether anything of a session without its own file is stored. */
  hasTraces(id: SessionId): Promise<boolean> {
    return this.#index.hasTraces(id);
  }

  /** Newest updated first, ties by id, a page at a time. Throws `InvalidCursor`. */
  async list(query: SessionQuery): Promise<SessionPage<SessionInfo>> {
    const { sessions: rows, ...more } = await this.listRows(query);
    const sessions: SessionInfo[] = [];
    for (const row of rows) {
      const info = await this.#index.infoOf(row);
      if (info) sessions.push(info);
    }
    return { sessions, ...more };
  }

  /** The same with what a list shows, for which no session's file is read that has not changed. */
  async listRows(query: SessionQuery): Promise<SessionPage<SessionRow>> {
    const { projectId, cursor } = query;
    const rows = cursor === undefined ? this.#index.rows(projectId) : this.#index.rowsSeen(projectId);
    return toPage(await rows, query);
  }

  /** Reads all sessions' own files and the other small files, and reports what is damaged. */
  async findDamage(): Promise<StoreDamage> {
    const { readSmallFiles, findAside } = await import("./store-check.ts");
    await readSmallFiles(this.files);
    const ids = await this.sessionIds();
    const rebuilt = ids.filter((id) => this.#index.rebuilt(id) !== undefined);
    const unplaced = await this.#index.unplaced();
    return { aside: await findAside(this.files.root), rebuilt, unplaced };
  }

  /** Every session, children and archived ones too. */
  async sessionIds(): Promise<SessionId[]> {
    return (await this.#index.rows()).map(({ id }) => id);
  }

  /** With its children and all that is stored of them. Nothing happens for an unknown session. */
  async remove(id: SessionId): Promise<void> {
    const family = await this.#family(id);
    const releases: (() => Promise<void>)[] = [];
    try {
      for (const row of family) releases.push(await this.#leaseForRemoval(row.id));
      for (const row of family.reverse()) await this.#removeOne(row);
    } finally {
      for (const release of releases) await release();
    }
  }

  /** Oldest first; those that are known as they are given. */
  messages(id: SessionId, known: readonly Message[] = []): AsyncIterable<Message> {
    return this.#messages.read(id, "oldest", new Map(known.map((message) => [message.info.id, message])));
  }

  /** Newest first; what is not asked for is not read. */
  messagesFromNewest(id: SessionId): AsyncIterable<Message> {
    return this.#messages.read(id, "newest");
  }

  async todos(id: SessionId): Promise<Todo[]> {
    return (await this.files.read(["todo", id], todosSchema)) ?? [];
  }

  /** Takes the session's lease and repairs what a killed writer left behind. */
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
    const journal = this.#journalOf(id, seq, lease);
    if (!isCut) await journal.replace(() => ({ seq, changes: [{ type: "session", seq, info }] }));
    const writer = this.#writerOf({ info, journal, seq, lease });
    return { info, writer, notice: rebuilt && rebuiltNotice(rebuilt.isComplete) };
  }

  #writerOf(session: Pick<SessionWriterOptions, "info" | "journal" | "seq" | "lease">): SessionWriter {
    const saveInfo = (info: SessionInfo) => this.#index.save(info);
    return new SessionWriter({ ...session, store: this.files, log: this.#log, saveInfo });
  }

  #journalOf(id: SessionId, startSeq: number, lease: LazyLease): Journal {
    return new Journal({
      path: this.#messages.journalPath(id),
      temporaryFolder: this.files.temporaryFolder,
      startSeq,
      log: this.#log,
      ready: () => lease.take(),
    });
  }

  async #leaseOfBegun(id: SessionId): Promise<HeldLease> {
    const lease = await acquireStoreLease(this.files, id);
    if (lease.status === "busy") throw new UserError(`The session ${id} is open in ${holderOf(lease)}.`);
    try {
      if (await this.#index.isStored(id)) return lease;
      throw new UserError(`The session ${id} was removed meanwhile.`);
    } catch (thrown) {
      await lease.release();
      throw thrown;
    }
  }

  /** The session and its descendants, parents before children. */
  async #family(id: SessionId): Promise<SessionRow[]> {
    const rows = await this.#index.rows();
    const family = rows.filter((row) => row.id === id);
    for (const member of family) {
      family.push(...rows.filter((row) => row.parentId === member.id && !family.includes(row)));
    }
    return family;
  }

  async #leaseForRemoval(id: SessionId): Promise<() => Promise<void>> {
    const lease = await acquireStoreLease(this.files, id);
    if (lease.status === "held") return lease.release;
    throw new UserError(
      `Session ${id} cannot be removed while ${holderOf(lease)} has it open. Close it there and try again.`,
    );
  }

  /** The session's own file goes last: what is cut off in between can be removed again. */
  async #removeOne({ id, projectId }: SessionRow): Promise<void> {
    await this.files.removeAll(["message", id]);
    await this.files.remove(["todo", id]);
    await this.files.remove(["session_diff", id]);
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
