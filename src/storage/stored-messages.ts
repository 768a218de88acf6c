import { setImmediate as breathe } from "node:timers/promises";
import type { Log } from "../base/log.ts";
import { isMessageId, type MessageId, type SessionId } from "../message/ids.ts";
import type { Message, SessionInfo } from "../message/message.ts";
import { type Change, replay, type StoredMessage, storedMessage } from "./change.ts";
import { type JournalContent, parseJournal } from "./journal.ts";
import { CorruptFile } from "./json/json-file.ts";
import type { JsonStore } from "./json/json-store.ts";

/** Messages handed out before other work gets its turn. */
const sliceMessages = 64;

/** What a session's journal and message files say together. */
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

  /** What the journal says about the session itself. */
  async sessionOf(id: SessionId): Promise<SessionInfo | undefined> {
    return (await this.#readJournal(id)).session;
  }

  /** One message after the other, read when asked for. Those that are known are not read. */
  async *read(
    id: SessionId,
    from: "oldest" | "newest",
    known: ReadonlyMap<MessageId, Message> = new Map(),
  ): AsyncGenerator<Message> {
    // The journal first: a message that moves from it to its file meanwhile is then seen twice, not never.
    const { changes } = await this.#readJournal(id);
    const ids = [...new Set([...changes.keys(), ...(await this.#storedIds(id)), ...known.keys()])].sort();
    if (from === "newest") ids.reverse();
    const unknown = ids.filter((messageId) => !known.has(messageId));
    const files = this.#files(id, unknown);
    for (const [index, messageId] of ids.entries()) {
      if (index % sliceMessages === sliceMessages - 1) await breathe();
      const message = known.get(messageId) ?? replay(await nextFile(files), changes.get(messageId) ?? []);
      if (message) yield { info: message.info, parts: message.parts };
    }
  }

  /**
   * Brings every message file up to date with what a killed process left in the journal. For the session's one writer.
   * `isCut` says that there is no journal, or that it holds nothing but the session itself; `seq` is the highest number given so far; `session` is what it
   * says of the session itself.
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

  /** A reader only skips a journal that cannot be read; `onUnreadable` is for the writer. */
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
    this.#log.warn("skipped what cannot be read of a journal", { sessionId: id, reason });
  }

  #moveJournalAside(id: SessionId, reason: string): Promise<void> {
    return this.#store.quarantine(this.journalPath(id), reason);
  }

  /** Without a sound journal the files are asked where counting goes on: older numbers would be taken for done. */
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
