import type { Readable } from "node:stream";
import { AbstractMessageReader, type DataCallback, type Disposable, type Message } from "vscode-jsonrpc/node";
import { z } from "zod";
import { RateLimiter } from "../base/rate-limiter.ts";
import type { CountingMessageWriter } from "./message-writer.ts";

/** A message and its headers; a server that sends more is not talked to any more. */
const messageLimitBytes = 32 * 1024 * 1024;
const headerLimitBytes = 8 * 1024;
const headerEnd = Buffer.from("\r\n\r\n");

/**
 * Messages of a language server, each behind its headers. Unlike the library's own reader it holds no more than a limit,
 * and leaves in the pipe what comes too fast, or from a server that does not read what it is sent.
 */
export class BoundedMessageReader extends AbstractMessageReader {
  readonly #stream: Readable;
  readonly #writer: Pick<CountingMessageWriter, "room">;
  readonly #pace = new RateLimiter();
  #held: Buffer[] = [];
  #heldBytes = 0;
  /** Bytes that are waited for: a header's limit, or a body's length. */
  #bodyBytes: number | undefined;
  #isBroken = false;

  constructor(stream: Readable, writer: Pick<CountingMessageWriter, "room">) {
    super();
    this.#stream = stream;
    this.#writer = writer;
  }

  listen(callback: DataCallback): Disposable {
    this.#stream.on("data", (chunk: Buffer) => {
      const messages = this.#take(chunk, callback);
      this.#stream.pause();
      void this.#readOn(messages, chunk.length);
    });
    this.#stream.once("close", () => this.fireClose());
    this.#stream.once("error", (error) => this.fireError(error));
    return { dispose: () => this.#break() };
  }

  async #readOn(messages: number, bytes: number): Promise<void> {
    await this.#pace.count(messages, bytes);
    await this.#writer.room;
    this.#stream.resume();
  }

  /** Says how many messages came to their end. */
  #take(chunk: Buffer, callback: DataCallback): number {
    let messages = 0;
    if (this.#isBroken) return messages;
    this.#held.push(chunk);
    this.#heldBytes += chunk.length;
    try {
      while (!this.#isBroken) {
        const message = this.#next();
        if (message === undefined) break;
        messages++;
        callback(message);
      }
    } catch (error) {
      this.#break();
      this.fireError(error instanceof Error ? error : new Error(String(error)));
    }
    return messages;
  }

  #next(): Message | undefined {
    this.#bodyBytes ??= this.#takeHeader();
    if (this.#bodyBytes === undefined || this.#heldBytes < this.#bodyBytes) return undefined;
    const body = this.#takeBytes(this.#bodyBytes);
    this.#bodyBytes = undefined;
    return toMessage(JSON.parse(body.toString("utf8")));
  }

  #takeHeader(): number | undefined {
    const bytes = this.#joined();
    const end = bytes.subarray(0, headerLimitBytes).indexOf(headerEnd);
    if (end === -1) {
      if (bytes.length >= headerLimitBytes) throw new Error("it prints something else than messages");
      return undefined;
    }
    const header = this.#takeBytes(end + headerEnd.length).toString("latin1");
    const length = /^content-length: *(\d+) *\r$/im.exec(header)?.[1];
    if (length === undefined) throw new Error("a message came without its length");
    if (Number(length) > messageLimitBytes) throw new Error(`a message of ${length} bytes is too long`);
    return Number(length);
  }

  #takeBytes(count: number): Buffer {
    const bytes = this.#joined();
    const rest = bytes.subarray(count);
    this.#held = rest.length === 0 ? [] : [rest];
    this.#heldBytes = rest.length;
    return bytes.subarray(0, count);
  }

  #joined(): Buffer {
    if (this.#held.length === 1 && this.#held[0]) return this.#held[0];
    const joined = Buffer.concat(this.#held);
    this.#held = [joined];
    return joined;
  }

  #break(): void {
    this.#isBroken = true;
    this.#held = [];
    this.#heldBytes = 0;
  }
}

/** The connection looks closer; here it need only be an object of the protocol. */
function toMessage(value: unknown): Message {
  const version = messageSchema.safeParse(value);
  if (!version.success) throw new Error("it prints something else than messages");
  return version.data;
}

const messageSchema = z.looseObject({ jsonrpc: z.string() });
