import { setImmediate as yieldToEventLoop } from "node:timers/promises";
import type { Log } from "../base/log.ts";
import { isMessageId, type MessageId, type SessionId } from "../message/ids.ts";
import type { Message, SessionInfo } from "../message/message.ts";
import { type Change, replay, type StoredMessage, storedMessage } from "./change.ts";
import { type JournalContent, parseJournal } from "./journal.ts";
import { CorruptFile } from "./json/json-file.ts";
import type { JsonStore } from "./json/json-store.ts";

/** Messages yielded before other work runs. */
const messagesPerSlice = 64;

/** Reads a session's messages from its journal and message files. */
export class StoredMessages {
  readonly #store: JsonStore;
  readonly #log: Log;

  constructor({ store, log }: { store: JsonStore; log: Log }) {
    this.#store = store;
    this.#log = log;
  }

  journalPath(id: SessionId): string {
    return this.#store.pathOf(["journal", id], ".ndjson");
  }

  /** Returns the session's info from its journal. */
  async sessionOf(id: SessionId): Promise<SessionInfo | undefined> {
    return (await this.#readJournal(id)).session;
  }

  /** Yields messages one by one, read on demand. Messages in `known` are not read. */
  async *read(
    id: SessionId,
    from: "oldest" | "newest",
    known: ReadonlyMap<MessageId, Message> = new Map(),
  ): AsyncGenerator<Message> {
    // The journal first: a message that moves to its file in the meantime is then seen twice instead of never.
    const { changes } = await this.#readJournal(id);
    const ids = [...new Set([...changes.keys(), ...(await this.#storedIds(id)), ...known.keys()])].sort();
    if (from === "newest") ids.reverse();
    const unknown = ids.filter((messageId) => !known.has(messageId));
    const files = this.#files(id, unknown);
    for (const [index, messageId] of ids.entries()) {
      if (index % messagesPerSlice === messagesPerSlice - 1) await yieldToEventLoop();
      const message = known.get(messageId) ?? replay(await nextFile(files), changes.get(messageId) ?? []);
      if (message) yield { info: message.info, parts: message.parts };
    }
  }

  /**
   * Applies what a killed process left in the journal to the message files. Only the session's one writer may call
   * it.
   * - `isCut`: there is no journal, or it contains only the session.
   * - `seq`: the highest number so far.
   * - `session`: the session's info in the journal.
   */
  async recover(id: SessionId): Promise<{ seq: number; isCut: boolean; session: SessionInfo | undefined }> {
    const content = await this.#readJournal(id, (reason) => this.#moveJournalAside(id, reason));
    for (const [messageId, changes] of content.changes) await this.#bringUpToDate(id, messageId, changes);
    const isDamaged = content.lastSeq === undefined || content.garbageLines > 0;
    const seq = Math.max(content.lastSeq ?? 0, isDamaged ? await this.#highestSeq(id) : 0);
    if (content.garbageLines > 0)
      await this.#moveJournalAside(id, `${content.garbageLines} lines are damaged`);
    const { session, changes, garbageLines, isTorn, lastSeq } = content;
    const hasSession = session !== undefined || lastSeq === undefined;
    const isCut = hasSession && changes.size === 0 && garbageLines === 0 && !isTorn;
    return { seq, isCut, session };
  }

  async #bringUpToDate(id: SessionId, messageId: MessageId, changes: Change[]): Promise<void> {
    const key = ["message", id, messageId];
    const file = await this.#store.read(key, storedMessage);
    const message = replay(file, changes);
    if (message === undefined) await this.#store.remove(key);
    else if (message.seq !== file?.seq) await this.#store.write(key, message);
  }

  /** Reads the journal. A reader skips an unreadable one; the writer handles it in `onUnreadable`. */
  async #readJournal(
    id: SessionId,
    onUnreadable?: (reason: string) => Promise<void>,
  ): Promise<JournalContent> {
    try {
      const content = parseJournal((await this.#store.readText(["journal", id], ".ndjson")) ?? "", id);
      if (content.garbageLines > 0) this.#warnOfJournal(id, `${content.garbageLines} lines are damaged`);
      return content;
    } catch (thrown) {
      if (!(thrown instanceof CorruptFile)) throw thrown;
      if (onUnreadable) await onUnreadable(thrown.message);
      else this.#warnOfJournal(id, thrown.message);
      return parseJournal("", id);
    }
  }

  #warnOfJournal(id: SessionId, reason: string): void {
    this.#log.warn("unreadable journal lines skipped", { sessionId: id, reason });
  }

  #moveJournalAside(id: SessionId, reason: string): Promise<void> {
    return this.#store.quarantine(this.journalPath(id), reason);
  }

  /**
   * Finds the highest `seq` in the files. Without an intact journal, lower numbers would be treated as already
   * applied.
   */
  async #highestSeq(id: SessionId): Promise<number> {
    let highest = 0;
    for await (const { file } of this.#files(id, await this.#storedIds(id))) {
      highest = Math.max(highest, file?.seq ?? 0);
    }
    return highest;
  }

  async #storedIds(id: SessionId): Promise<MessageId[]> {
    return (await this.#store.names(["message", id])).filter(isMessageId);
  }

  async *#files(
    id: SessionId,
    ids: MessageId[],
  ): AsyncGenerator<{ messageId: MessageId; file: StoredMessage | undefined }> {
    for await (const { name, value } of this.#store.readEach(["message", id], ids, storedMessage)) {
      const isForeign = value && (value.info.id !== name || value.info.sessionId !== id);
      if (isForeign) {
        await this.#store.quarantine(this.#store.pathOf(["message", id, name]), "belongs to another message");
      }
      yield { messageId: name, file: isForeign ? undefined : value };
    }
  }
}

async function nextFile(
  files: AsyncGenerator<{ file: StoredMessage | undefined }>,
): Promise<StoredMessage | undefined> {
  const { done, value } = await files.next();
  return done ? undefined : value.file;
}
