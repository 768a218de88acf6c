import type { Log } from "../base/log.ts";
import type { MessageId, PartId, SessionId } from "../message/ids.ts";
import type { MessageInfo, SessionInfo, Todo } from "../message/message.ts";
import type { Part } from "../message/part.ts";
import { Background } from "./json/background.ts";
import { type Change, Draft, storedMessage } from "./change.ts";
import type { Journal } from "./journal.ts";
import type { JsonStore } from "./json/json-store.ts";
import type { LazyLease } from "./json/lazy-lease.ts";

/** A smaller journal is not rewritten while its session is open. */
const journalLimitBytes = 64 * 1024;

/** A journal is rewritten when it exceeds its needed content by this factor. */
const journalGrowthLimit = 4;

/** Longest delay before changes of each step are in the session's file. */
const noteDelayMs = 1_000;

/** Longest time that streamed text waits for the journal; a kill loses at most this. */
const deltaDelayMs = 100;

/** Pending file work. The journal contains its data until it is done. */
type PendingFileWork =
  | { type: "file"; messageId: MessageId; draft: Draft }
  | { type: "remove"; change: Extract<Change, { type: "remove" }> };

export interface SessionWriterOptions {
  readonly info: SessionInfo;
  readonly store: JsonStore;
  readonly saveInfo: (info: SessionInfo) => Promise<void>;
  readonly log: Log;
  readonly journal: Journal;
  /** The session's highest change number. */
  readonly seq: number;
  readonly lease: LazyLease;
}

/**
 * The only writer of a session. Changes return immediately and are written in the background; {@link flush} waits
 * for them and reports a full or read-only disk. A message stays in memory until it is sealed and written to its
 * file.
 */
export class SessionWriter {
  readonly id: SessionId;
  readonly #store: JsonStore;
  readonly #log: Log;
  readonly #journal: Journal;
  readonly #lease: LazyLease;
  readonly #live = new Map<MessageId, Draft>();
  readonly #pendingWork: PendingFileWork[] = [];
  readonly #working: Background;
  readonly #info: Latest<SessionInfo>;
  readonly #todos: Latest<Todo[]>;
  #newestInfo: SessionInfo;
  /** Streamed text that is merged before it goes to the journal. */
  #pendingDelta: { readonly messageId: MessageId; readonly partId: PartId; delta: string } | undefined;
  #deltaTimer: NodeJS.Timeout | undefined;
  #seq: number;
  #closing: Promise<void> | undefined;
  /** The journal's size after its last rewrite; undefined while it contains nothing that is needed. */
  #neededBytes: number | undefined;

  constructor(options: SessionWriterOptions) {
    const { store, log } = options;
    const { id } = options.info;
    this.id = id;
    this.#newestInfo = options.info;
    this.#store = store;
    this.#log = log;
    this.#journal = options.journal;
    this.#seq = options.seq;
    this.#lease = options.lease;
    this.#working = new Background({ name: "filing messages", work: () => this.#runPendingWork(), log });
    const { saveInfo } = options;
    this.#info = new Latest("saving a session", log, (info) => this.#withLease(() => saveInfo(info)));
    this.#todos = new Latest("saving todos", log, (todos) =>
      this.#withLease(() => store.write(["todo", id], todos)),
    );
  }

  /** Acquires the lease of a new session. Rejects with a `UserError` when another process holds it. */
  async claim(): Promise<void> {
    if (this.#closing === undefined) await this.#lease.take();
  }

  saveInfo(info: SessionInfo): void {
    this.#journalInfo(info);
    this.#info.set(info);
  }

  /** Saves info that changes with each step: in the journal now, in its file within a second or on {@link flush}. */
  noteInfo(info: SessionInfo): void {
    this.#journalInfo(info);
    this.#info.note(info);
  }

  saveTodos(todos: Todo[]): void {
    this.#expectOpen();
    this.#todos.set(todos);
  }

  putMessage(info: MessageInfo): void {
    this.#flushDelta();
    this.#change(info.id, { type: "message", seq: this.#nextSeq(), info });
  }

  /** Creates the part or replaces the one with its id. */
  putPart(messageId: MessageId, part: Part): void {
    this.#flushDelta();
    this.#change(messageId, { type: "part", seq: this.#nextSeq(), messageId, part });
  }

  /** Appends to a text or reasoning part, in time proportional to the delta. */
  append(messageId: MessageId, partId: PartId, delta: string): void {
    const pending = this.#pendingDelta;
    if (pending?.partId === partId && pending.messageId === messageId) {
      pending.delta += delta;
      return;
    }
    this.#expectOpen();
    this.#flushDelta();
    this.#pendingDelta = { messageId, partId, delta };
    // The process flushes before it ends.
    this.#deltaTimer ??= setTimeout(() => this.#flushDelta(), deltaDelayMs).unref();
  }

  /**
   * Marks a message as finished: it is written to its file and leaves the memory. It may be changed and sealed
   * again.
   */
  seal(messageId: MessageId): void {
    this.#expectOpen();
    this.#flushDelta();
    const draft = this.#live.get(messageId);
    if (!draft) return;
    this.#live.delete(messageId);
    this.#pendingWork.push({ type: "file", messageId, draft });
    this.#working.start();
  }

  async removeMessages(ids: MessageId[]): Promise<void> {
    this.#expectOpen();
    this.#flushDelta();
    const change = { type: "remove" as const, seq: this.#nextSeq(), messageIds: ids };
    this.#journal.append(change);
    for (const id of ids) this.#live.delete(id);
    this.#pendingWork.push({ type: "remove", change });
    await this.flush();
  }

  /** Resolves when all changes so far survive the end of this process. Rejects as {@link flush} does. */
  secure(): Promise<void> {
    if (this.#closing !== undefined) return this.#closing;
    this.#flushDelta();
    return this.#journal.flush();
  }

  /**
   * Resolves when all changes so far are on disk. Rejects with a `UserError` on a disk error; unwritten changes
   * stay, and a later flush retries them.
   */
  async flush(): Promise<void> {
    if (this.#closing !== undefined) return this.#closing;
    await this.#flush();
    await this.#journal.rest();
  }

  async #flush(): Promise<void> {
    this.#flushDelta();
    const results = await Promise.allSettled([
      this.#journal.flush(),
      this.#working.finish(),
      this.#info.flush(),
      this.#todos.flush(),
    ]);
    for (const result of results) if (result.status === "rejected") throw result.reason;
  }

  /** Flushes and releases the lease, even when the flush rejects. No changes are allowed afterwards. */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    try {
      await this.#flush();
      if (this.#neededBytes !== undefined) await this.#cutJournal();
    } finally {
      await this.#journal.close();
      await this.#lease.release();
    }
  }

  /** A write without the lease could destroy another writer's changes. */
  #expectOpen(): void {
    if (this.#closing) throw new Error(`session ${this.id} was written after it was closed`);
  }

  #nextSeq(): number {
    return ++this.#seq;
  }

  #journalInfo(info: SessionInfo): void {
    this.#newestInfo = info;
    this.#append({ type: "session", seq: this.#nextSeq(), info });
  }

  #flushDelta(): void {
    const pending = this.#pendingDelta;
    clearTimeout(this.#deltaTimer);
    this.#deltaTimer = undefined;
    this.#pendingDelta = undefined;
    if (pending !== undefined)
      this.#change(pending.messageId, { type: "delta", seq: this.#nextSeq(), ...pending });
  }

  #append(change: Change): void {
    this.#expectOpen();
    this.#journal.append(change);
    this.#neededBytes ??= 0;
  }

  #change(messageId: MessageId, change: Change): void {
    this.#append(change);
    const draft = this.#live.get(messageId) ?? new Draft();
    this.#live.set(messageId, draft);
    draft.add(change);
  }

  async #withLease(write: () => Promise<void>): Promise<void> {
    await this.#lease.take();
    await write();
  }

  /** Does pending file work in order. Failed work stays first and is retried. */
  async #runPendingWork(): Promise<void> {
    await this.#lease.take();
    for (let next = this.#pendingWork[0]; next; next = this.#pendingWork[0]) {
      if (next.type === "file") await this.#file(next.messageId, next.draft);
      else await this.#remove(next.change.messageIds);
      this.#pendingWork.shift();
      this.#neededBytes ??= 0;
    }
    if (this.#isCutDue()) await this.#cutJournal();
  }

  async #file(messageId: MessageId, draft: Draft): Promise<void> {
    const key = ["message", this.id, messageId];
    const message = draft.applyTo(await this.#store.read(key, storedMessage));
    if (message) await this.#store.write(key, message);
    else this.#log.warn("parts of an unknown message dropped", { sessionId: this.id, messageId });
  }

  async #remove(messageIds: MessageId[]): Promise<void> {
    // The journal first, or a kill between two removals would bring the other messages back.
    await this.#journal.flush();
    for (const id of messageIds) await this.#store.remove(["message", this.id, id]);
  }

  #isCutDue(): boolean {
    if (this.#neededBytes === undefined) return false;
    return this.#journal.sizeBytes > Math.max(journalLimitBytes, journalGrowthLimit * this.#neededBytes);
  }

  async #cutJournal(): Promise<void> {
    await this.#journal.replace(() => {
      const filed = this.#pendingWork.flatMap(toChanges);
      const live = [...this.#live.values()].flatMap((draft) => draft.changes());
      // A copy, because the session's own file may get damaged.
      const info: Change = { type: "session", seq: this.#seq, info: this.#newestInfo };
      this.#neededBytes = undefined;
      return { seq: this.#seq, changes: [info, ...filed, ...live] };
    });
    if (this.#live.size > 0 || this.#info.unsaved) this.#neededBytes = this.#journal.sizeBytes;
  }
}

function toChanges(settlement: PendingFileWork): Change[] {
  return settlement.type === "file" ? settlement.draft.changes() : [settlement.change];
}

/** A value whose newest version is saved in the background. */
class Latest<T> {
  readonly #saving: Background;
  readonly #save: (value: T) => Promise<void>;
  #unsaved: { value: T } | undefined;
  #timer: NodeJS.Timeout | undefined;

  constructor(name: string, log: Log, save: (value: T) => Promise<void>) {
    this.#save = save;
    this.#saving = new Background({ name, log, work: () => this.#saveNewest() });
  }

  get unsaved(): { readonly value: T } | undefined {
    return this.#unsaved;
  }

  set(value: T): void {
    this.#unsaved = { value };
    this.#saving.start();
  }

  /** Sets the value and saves it with the next {@link set}, or after a delay. */
  note(value: T): void {
    this.#unsaved = { value };
    // The process flushes before it ends.
    this.#timer ??= setTimeout(() => this.#saving.start(), noteDelayMs).unref();
  }

  flush(): Promise<void> {
    return this.#saving.finish();
  }

  async #saveNewest(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const unsaved = this.#unsaved;
    if (!unsaved) return;
    await this.#save(unsaved.value);
    if (this.#unsaved === unsaved) this.#unsaved = undefined;
  }
}
