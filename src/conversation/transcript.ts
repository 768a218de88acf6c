import type { Emit } from "../message/event.ts";
import { type MessageId, messageIdAfter, newMessageId, type PartId, type SessionId } from "../message/ids.ts";
import type { AssistantInfo, Message, MessageInfo } from "../message/message.ts";
import type { Part, ToolPart } from "../message/part.ts";
import type { SessionWriter } from "../storage/session-store.ts";

/**
 * The visible messages of one session and their only writer. Every change goes to memory, then to the store, then to
 * the listeners. A finished call and a finished message are on disk before they are emitted.
 */
export class Transcript {
  readonly sessionId: SessionId;
  readonly #writer: SessionWriter;
  readonly #emit: Emit;
  readonly #path: AssistantInfo["path"];
  #messages: Message[];
  /** The highest id so far; messages are sorted by id. */
  #lastId: MessageId | undefined;

  /** `newest` may be newer than the visible messages. `path` is added to assistant messages. */
  constructor(deps: {
    writer: SessionWriter;
    emit: Emit;
    messages: Message[];
    newest?: MessageId;
    path?: AssistantInfo["path"];
  }) {
    this.sessionId = deps.writer.id;
    this.#writer = deps.writer;
    this.#emit = deps.emit;
    this.#path = deps.path;
    this.#messages = deps.messages;
    for (const { info } of deps.messages) this.#noteId(info.id);
    if (deps.newest !== undefined) this.#noteId(deps.newest);
  }

  /** Oldest first, starting at the newest finished compaction. */
  get messages(): readonly Message[] {
    return this.#messages;
  }

  /** Returns an id that sorts after every message of the session, regardless of the clock. */
  newMessageId(): MessageId {
    return this.#lastId === undefined ? newMessageId() : messageIdAfter(this.#lastId);
  }

  find(id: MessageId): Message | undefined {
    return this.#messages.findLast((message) => message.info.id === id);
  }

  addMessage(added: MessageInfo): void {
    const info = this.#withPath(added);
    this.#messages.push({ info, parts: [] });
    this.#noteId(info.id);
    this.#writer.putMessage(info);
    this.#emit({ sessionId: this.sessionId, type: "message", info });
  }

  updateMessage(updated: MessageInfo): void {
    const info = this.#withPath(updated);
    this.#message(info.id).info = info;
    this.#writer.putMessage(info);
    this.#emit({ sessionId: this.sessionId, type: "message", info });
  }

  /** Creates the part or replaces the one with its id. */
  putPart(messageId: MessageId, part: Part): void {
    const isNew = this.#storePart(messageId, part);
    this.#emit({ sessionId: this.sessionId, type: "part", messageId, part, isNew });
  }

  /** Stores a finished call, and emits it when it survives the end of the process. Rejects on a disk error. */
  async settleCall(messageId: MessageId, part: ToolPart): Promise<void> {
    this.#storePart(messageId, part);
    await this.#writer.secure();
    this.#emit({ sessionId: this.sessionId, type: "part", messageId, part });
  }

  /**
   * Replaces parts of a finished message on disk, and in memory if it is visible. Emits nothing: for listeners the
   * parts were already finished.
   */
  async amendParts(messageId: MessageId, amended: readonly Part[]): Promise<void> {
    const parts = this.find(messageId)?.parts ?? [];
    for (const part of amended) {
      const index = parts.findLastIndex((other) => other.id === part.id);
      if (index !== -1) parts[index] = part;
      this.#writer.putPart(messageId, part);
    }
    await this.seal(messageId);
  }

  /** Appends to a text or reasoning part, in time proportional to the delta. */
  append(messageId: MessageId, partId: PartId, delta: string): void {
    const part = this.#message(messageId).parts.findLast((other) => other.id === partId);
    if (part?.type !== "text" && part?.type !== "reasoning") throw new Error(`no text part ${partId}`);
    part.text += delta;
    this.#writer.append(messageId, partId, delta);
    this.#emit({
      sessionId: this.sessionId,
      type: "delta",
      messageId,
      partId,
      kind: part.type,
      delta,
    });
  }

  /** Marks the message as finished and waits until it survives the end of the process. */
  async seal(messageId: MessageId): Promise<void> {
    this.#writer.seal(messageId);
    await this.#writer.secure();
  }

  /** Marks the assistant message as ended and seals it, before the end is emitted. */
  async complete(info: AssistantInfo): Promise<void> {
    const ended = this.#withPath({ ...info, time: { ...info.time, completed: Date.now() } });
    this.#message(info.id).info = ended;
    this.#writer.putMessage(ended);
    await this.seal(info.id);
    this.#emit({ sessionId: this.sessionId, type: "message", info: ended });
  }

  /** Replaces the visible messages, after a compaction or an undo. The stored messages do not change. */
  show(messages: Message[]): void {
    this.#messages = messages;
  }

  /** Returns whether the part was added. */
  #storePart(messageId: MessageId, part: Part): boolean {
    const { parts } = this.#message(messageId);
    const index = parts.findLastIndex((other) => other.id === part.id);
    if (index === -1) parts.push(part);
    else parts[index] = part;
    this.#writer.putPart(messageId, part);
    return index === -1;
  }

  #withPath(info: MessageInfo): MessageInfo {
    if (info.role === "user" || info.path !== undefined || this.#path === undefined) return info;
    return { ...info, path: this.#path };
  }

  #noteId(id: MessageId): void {
    if (this.#lastId === undefined || id > this.#lastId) this.#lastId = id;
  }

  #message(id: MessageId): Message {
    const message = this.find(id);
    if (message === undefined) throw new Error(`no message ${id} in session ${this.sessionId}`);
    return message;
  }
}
