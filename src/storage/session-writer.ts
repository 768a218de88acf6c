import type { Log } from "../base/log.ts";
import type { MessageId, PartId, SessionId } from "../message/ids.ts";
import type { MessageInfo, SessionInfo, Todo } from "../message/message.ts";
import type { Part } from "../message/part.ts";
import { Background } from "./json/background.ts";
import { type Change, Draft, storedMessage } from "./change.ts";
import type { Journal } from "./journal.ts";
import type { JsonStore } from "./json/json-store.ts";
import type { LazyLease } from "./json/lazy-lease.ts";

/** Below this a journal is not worth rewriting while its session is open. */
const journalLimitBytes = 64 * 1024;

/** A journal that is this many times larger than what is needed of it is rewritten. */
const journalGrowth = 4;

/** What changes with each step is in the session's file after so long at the latest. */
const noteDelayMs = 1_000;

/** How long streamed text may wait for the journal: what a kill can cost of it, half of what may be lost. */
const growthDelayMs = 100;

/** Work on files that the journal vouches for until it is done. */
type Settlement =
  | { type: "file"; messageId: MessageId; draft: Draft }
  | { type: "remove"; change: Extract<Change, { type: "remove" }> };

export interface SessionWriterOptions {
  /** As it is stored. */
  readonly info: SessionInfo;
  readonly store: JsonStore;
  /** Writes the session's own file. */
  readonly saveInfo: (info: SessionInfo) => Promise<void>;
  readonly log: Log;
  readonly journal: Journal;
  /** The highest change number that the session has. */
  readonly seq: number;
  readonly lease: LazyLease;
}

/**
 * The one writer of a session. Changes are given to it without waiting and are written behind; {@link flush} waits
 * for them and is where a full or read-only disk shows. A message is in memory here until it is sealed and filed.
 */
export class SessionWriter {
  readonly id: SessionId;
  readonly #store: JsonStore;
  readonly #log: Log;
  readonly #journal: Journal;
  readonly #lease: LazyLease;
  readonly #live = new Map<MessageId, Draft>();
  readonly #settlements: Settlement[] = [];
  readonly #settling: Background;
  readonly #info: Latest<SessionInfo>;
  readonly #todos: Latest<Todo[]>;
  #newestInfo: SessionInfo;
  /** Text that streamed and is merged before the journal gets it. */
  #growth: { readonly messageId: MessageId; readonly partId: PartId; delta: string } | undefined;
  #growthDue: NodeJS.Timeout | undefined;
  #seq: number;
  #closing: Promise<void> | undefined;
  /** The journal's size when it was last rewritten; undefined while it holds nothing. */
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
    this.#settling = new Background({ name: "filing messages", work: () => this.#settle(), log });
    const { saveInfo } = options;
    this.#info = new Latest("saving a session", log, (info) => this.#withLease(() => saveInfo(info)));
    this.#todos = new Latest("saving todos", log, (todos) =>
      this.#withLease(() => store.write(["todo", id], todos)),
    );
  }

  /** Takes the lease of a session that was just begun. Rejects with a `UserError` where another has it. */
  async claim(): Promise<void> {
    if (this.#closing === undefined) await this.#lease.take();
  }

  saveInfo(info: SessionInfo): void {
    this.#keepInfo(info);
    this.#info.set(info);
  }

  /** For what changes with each step: kept at once, in its file with the next second or {@link flush}. */
  noteInfo(info: SessionInfo): void {
    this.#keepInfo(info);
    this.#info.note(info);
  }

  saveTodos(todos: Todo[]): void {
    this.#expectOpen();
    this.#todos.set(todos);
  }

  putMessage(info: MessageInfo): void {
    this.#keepGrowth();
    this.#change(info.id, { type: "message", seq: this.#nextSeq(), info });
  }

  /** Creates the part or replaces the one with its id. */
  putPart(messageId: MessageId, part: Part): void {
    this.#keepGrowth();
    this.#change(messageId, { type: "part", seq: this.#nextSeq(), messageId, part });
  }

  /** Appends to a text or reasoning part; costs what the delta costs. */
  append(messageId: MessageId, partId: PartId, delta: string): void {
    const growth = this.#growth;
    if (growth?.partId === partId && growth.messageId === messageId) {
      growth.delta += delta;
      return;
    }
    this.#expectOpen();
    this.#keepGrowth();
    this.#growth = { messageId, partId, delta };
    // Whoever ends the process flushes before.
    this.#growthDue ??= setTimeout(() => this.#keepGrowth(), growthDelayMs).unref();
  }

  /** The message is finished: it gets its file and leaves the memory. It may be changed and sealed again later. */
  seal(messageId: MessageId): void {
    this.#expectOpen();
    this.#keepGrowth();
    const draft = this.#live.get(messageId);
    if (!draft) return;
    this.#live.delete(messageId);
    this.#settlements.push({ type: "file", messageId, draft });
    this.#settling.start();
  }

  async removeMessages(ids: MessageId[]): Promise<void> {
    this.#expectOpen();
    this.#keepGrowth();
    const change = { type: "remove" as const, seq: this.#nextSeq(), messageIds: ids };
    this.#journal.append(change);
    for (const id of ids) this.#live.delete(id);
    this.#settlements.push({ type: "remove", change });
    await this.flush();
  }

  /** Resolves when nothing of what was given so far is lost with this process. Rejects as {@link flush} does. */
  secure(): Promise<void> {
    if (this.#closing !== undefined) return this.#closing;
    this.#keepGrowth();
    return this.#journal.flush();
  }

  /**
   * Resolves when everything given so far is on disk. Rejects with a `UserError` when the disk does not take it;
   * what is not written yet stays, and a later flush tries again.
   */
  async flush(): Promise<void> {
    if (this.#closing !== undefined) return this.#closing;
    await this.#flush();
    await this.#journal.rest();
  }

  async #flush(): Promise<void> {
    this.#keepGrowth();
    const results = await Promise.allSettled([
      this.#journal.flush(),
      this.#settling.finish(),
      this.#info.flush(),
      this.#todos.flush(),
    ]);
    for (const result of results) if (result.status === "rejected") throw result.reason;
  }

  /** Flushes and lets others write the session, even when the flush rejects. Nothing may be given from now on. */
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

  /** Without the lease a write could destroy another writer's. */
  #expectOpen(): void {
    if (this.#closing) throw new Error(`session ${this.id} was written after it was closed`);
  }

  #nextSeq(): number {
    return ++this.#seq;
  }

  #keepInfo(info: SessionInfo): void {
    this.#newestInfo = info;
    this.#append({ type: "session", seq: this.#nextSeq(), info });
  }

  #keepGrowth(): void {
    const growth = this.#growth;
    clearTimeout(this.#growthDue);
    this.#growthDue = undefined;
    this.#growth = undefined;
    if (growth !== undefined)
      this.#change(growth.messageId, { type: "delta", seq: this.#nextSeq(), ...growth });
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

  /** In the order in which they were asked for; one that fails stays first and is tried again. */
  async #settle(): Promise<void> {
    await this.#lease.take();
    for (let next = this.#settlements[0]; next; next = this.#settlements[0]) {
      if (next.type === "file") await this.#file(next.messageId, next.draft);
      else await this.#remove(next.change.messageIds);
      this.#settlements.shift();
      this.#neededBytes ??= 0;
    }
    if (this.#isCutDue()) await this.#cutJournal();
  }

  async #file(messageId: MessageId, draft: Draft): Promise<void> {
    const key = ["message", this.id, messageId];
    const message = draft.applyTo(await this.#store.read(key, storedMessage));
    if (message) await this.#store.write(key, message);
    else this.#log.warn("dropped parts of an unknown message", { sessionId: this.id, messageId });
  }

  async #remove(messageIds: MessageId[]): Promise<void> {
    // The journal must know first, or a kill between two files would bring the others back.
    await this.#journal.flush();
    for (const id of messageIds) await this.#store.remove(["message", this.id, id]);
  }

  #isCutDue(): boolean {
    if (this.#neededBytes === undefined) return false;
    return this.#journal.sizeBytes > Math.max(journalLimitBytes, journalGrowth * this.#neededBytes);
  }

  async #cutJournal(): Promise<void> {
    await this.#journal.replace(() => {
      const filed = this.#settlements.flatMap(toChanges);
      const live = [...this.#live.values()].flatMap((draft) => draft.changes());
      // Its own file may get damaged: the journal has a copy.
      const info: Change = { type: "session", seq: this.#seq, info: this.#newestInfo };
      this.#neededBytes = undefined;
      return { seq: this.#seq, changes: [info, ...filed, ...live] };
    });
    if (this.#live.size > 0 || this.#info.unsaved) this.#neededBytes = this.#journal.sizeBytes;
  }
}

function toChanges(settlement: Settlement): Change[] {
  return settlement.type === "file" ? settlement.draft.changes() : [settlement.change];
}

/** A value of which only the newest matters. */
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

  /** Sets it, and saves it with the next that is set, or after a while. */
  note(value: T): void {
    this.#unsaved = { value };
    // Whoever ends the process flushes before.
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
