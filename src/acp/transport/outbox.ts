import type { Writable } from "node:stream";
import type { AnyMessage, SessionUpdate } from "@agentclientprotocol/sdk/unstable";
import { type Deferred, deferred, sleep } from "../../base/async.ts";
import { beginningOf } from "../../base/text/excerpt.ts";
import { toJson } from "../../base/text/json.ts";
import { toWireJson } from "./sanitize-output.ts";

/** Bytes that may wait for a slow client; above this, {@link Outbox.waitUntilReady} waits. */
const highWaterBytes = 1024 * 1024;
/** Characters of text in one update: even fully escaped it is below 1 MiB, where some clients fail. */
const chunkLength = 64 * 1024;

const ready = Promise.resolve();

/**
 * Writes messages to the client, in order. Accepts every message at once; sources of much output await
 * {@link waitUntilReady}. While a write is running, messages wait; text chunks of one message are merged, and the next
 * write sends all of them.
 */
export class Outbox {
  readonly #output: Writable;
  readonly #afterResponse = new Map<string, () => void>();
  readonly #closed: Deferred<void> = deferred<void>();
  #queue: Entry[] = [];
  #queuedBytes = 0;
  #lastWrite = 0;
  #writing = false;
  #isClosed = false;
  #isSealed = false;
  #drained: Deferred<void> | undefined;

  constructor(output: Writable) {
    this.#output = output;
    output.on("error", () => this.close());
    output.on("close", () => this.close());
  }

  /** Resolves when the client disconnected; later messages are dropped. */
  get closed(): Promise<void> {
    return this.#closed.promise;
  }

  send(message: AnyMessage): void {
    this.#push({ line: toLine(message) });
    this.#runAfterResponse(message);
  }

  /** Sends the responses of a batch as one line. */
  sendAll(messages: readonly AnyMessage[]): void {
    this.#push({ line: `[${messages.map((message) => toLine(message).trimEnd()).join()}]\n` });
    for (const message of messages) this.#runAfterResponse(message);
  }

  /** Sends a `session/update`. Text may be merged with the previous chunk of the same message; long text is split. */
  update(sessionId: string, update: WireUpdate): void {
    if (!isTextChunk(update)) return this.#push({ line: toUpdateLine(toWireJson({ sessionId, update })) });
    for (const text of splitText(update.content.text))
      this.#sendText(sessionId, { ...update, content: { ...update.content, text } });
  }

  #sendText(sessionId: string, update: TextChunk): void {
    const last = this.#queue.at(-1);
    if (
      last === undefined ||
      "line" in last ||
      last.sessionId !== sessionId ||
      !continues(last.update, update)
    ) {
      return this.#push({ sessionId, update });
    }
    last.update.content.text += update.content.text;
    this.#queuedBytes += update.content.text.length;
  }

  /** Runs the task right after the response to this request, before anything else is sent. */
  afterResponse(requestId: string | number | null, task: () => void): void {
    this.#afterResponse.set(JSON.stringify(requestId), task);
  }

  /** Resolves when the client has read enough to receive more, or disconnected. */
  waitUntilReady(): Promise<void> {
    if (this.#queuedBytes < highWaterBytes || this.#isClosed) return ready;
    this.#drained ??= deferred<void>();
    return this.#drained.promise;
  }

  /** Resolves when all messages are written or the client disconnected. */
  async flush(): Promise<void> {
    while (!this.#isClosed && (this.#writing || this.#queue.length > 0)) {
      this.#drained ??= deferred<void>();
      await this.#drained.promise;
    }
  }

  /** Resolves when nothing was sent for `ms` milliseconds, so that work does not delay streamed text. */
  async waitUntilIdle(ms: number): Promise<void> {
    for (;;) {
      const restMs = this.#lastWrite + ms - performance.now();
      if (restMs <= 0 || this.#isClosed) return;
      await sleep(Math.ceil(restMs));
    }
  }

  /** Drops all later messages. */
  seal(): void {
    this.#isSealed = true;
  }

  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#queue = [];
    this.#drained?.resolve();
    this.#closed.resolve();
  }

  #push(entry: Entry): void {
    if (this.#isClosed || this.#isSealed) return;
    this.#queue.push(entry);
    this.#queuedBytes += "line" in entry ? entry.line.length : entry.update.content.text.length;
    this.#pump();
  }

  #pump(): void {
    if (this.#writing || this.#queue.length === 0) return;
    let lines = "";
    for (const entry of this.#queue) lines += "line" in entry ? entry.line : toTextLine(entry);
    this.#queue = [];
    this.#queuedBytes = 0;
    this.#lastWrite = performance.now();
    this.#writing = true;
    this.#output.write(lines, () => this.#written());
  }

  #written(): void {
    this.#writing = false;
    const drained = this.#drained;
    this.#drained = undefined;
    drained?.resolve();
    this.#pump();
  }

  #runAfterResponse(message: AnyMessage): void {
    if ("method" in message || !("id" in message)) return;
    const key = JSON.stringify(message.id);
    const task = this.#afterResponse.get(key);
    if (task === undefined) return;
    this.#afterResponse.delete(key);
    task();
  }
}

/** A session update of either protocol version. */
export interface WireUpdate {
  sessionUpdate: string;
  content?: unknown;
}

type Entry = { line: string } | TextEntry;

interface TextEntry {
  sessionId: string;
  update: TextChunk;
}

type ChunkKind =
  | "user_message_chunk"
  | "agent_message_chunk"
  | "agent_thought_chunk"
  | "compaction_summary_chunk";
type Chunk = Extract<SessionUpdate, { sessionUpdate: ChunkKind }>;
type TextChunk = Chunk & { content: { type: "text"; text: string } };

function isTextChunk(update: WireUpdate): update is TextChunk {
  const { sessionUpdate } = update;
  if (
    sessionUpdate !== "user_message_chunk" &&
    sessionUpdate !== "agent_message_chunk" &&
    sessionUpdate !== "agent_thought_chunk" &&
    sessionUpdate !== "compaction_summary_chunk"
  )
    return false;
  const { content } = update;
  return typeof content === "object" && content !== null && "type" in content && content.type === "text";
}

/** Whether two chunks can be merged. The blocks of a user message remain separate. */
function continues(last: TextChunk, next: TextChunk): boolean {
  if (last.sessionUpdate !== next.sessionUpdate || ownerOf(last) !== ownerOf(next)) return false;
  if (last.sessionUpdate === "user_message_chunk") return false;
  return last.content.text.length + next.content.text.length <= chunkLength;
}

function ownerOf(update: TextChunk): string | null | undefined {
  return update.sessionUpdate === "compaction_summary_chunk" ? update.compactionId : update.messageId;
}

/** Splits text into chunks of at most `chunkLength` characters, never inside a surrogate pair. */
function splitText(text: string): string[] {
  if (text.length <= chunkLength) return [text];
  const chunks: string[] = [];
  for (let start = 0; start < text.length;) {
    const rest = text.slice(start, start + chunkLength + 1);
    const chunk = rest.length > chunkLength ? beginningOf(rest, chunkLength) : rest;
    chunks.push(chunk);
    start += chunk.length;
  }
  return chunks;
}

/** Builds the line of a text chunk, whose fields are sent unchanged. */
function toTextLine({ sessionId, update }: TextEntry): string {
  return toUpdateLine(toJson({ sessionId, update }));
}

function toUpdateLine(params: string): string {
  return `{"jsonrpc":"2.0","method":"session/update","params":${params}}\n`;
}

/** Serializes a message. One that cannot be serialized (nested too deeply) becomes an error response. */
function toLine(message: AnyMessage): string {
  try {
    return `${toWireJson(message)}\n`;
  } catch {
    const id = "id" in message ? message.id : null;
    const error = { code: -32603, message: "The answer could not be written as JSON." };
    return `${JSON.stringify({ jsonrpc: "2.0", id, error })}\n`;
  }
}
