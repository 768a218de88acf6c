import type { Readable } from "node:stream";
import { AbstractMessageReader, type DataCallback, type Disposable, type Message } from "vscode-jsonrpc/node";
import { z } from "zod";
import { RateLimiter } from "../../base/rate-limiter.ts";
import type { CountingMessageWriter } from "./message-writer.ts";

/** Size limits of a message and its headers; exceeding them ends the connection. */
const messageLimitBytes = 32 * 1024 * 1024;
const headerLimitBytes = 8 * 1024;
const headerEnd = Buffer.from("\r\n\r\n");

/**
 * Reads framed messages of a language server. Limits the buffered size, unlike the library's reader, and
 * pauses reading if messages come too fast or the server reads too slowly.
 */
export class BoundedMessageReader extends AbstractMessageReader {
  readonly #stream: Readable;
  readonly #writer: Pick<CountingMessageWriter, "drained">;
  readonly #rateLimiter = new RateLimiter();
  #chunks: Buffer[] = [];
  #bufferedBytes = 0;
  /** Length of the body to read; undefined while reading headers. */
  #bodyBytes: number | undefined;
  #isBroken = false;

  constructor(stream: Readable, writer: Pick<CountingMessageWriter, "drained">) {
    super();
    this.#stream = stream;
    this.#writer = writer;
  }

  listen(callback: DataCallback): Disposable {
    this.#stream.on("data", (chunk: Buffer) => {
      const messages = this.#take(chunk, callback);
      this.#stream.pause();
      void this.#resume(messages, chunk.length);
    });
    this.#stream.once("close", () => this.fireClose());
    this.#stream.once("error", (error) => this.fireError(error));
    return { dispose: () => this.#fail() };
  }

  async #resume(messages: number, bytes: number): Promise<void> {
    await this.#rateLimiter.count(messages, bytes);
    await this.#writer.drained;
    this.#stream.resume();
  }

  /** Returns the number of complete messages. */
  #take(chunk: Buffer, callback: DataCallback): number {
    let messages = 0;
    if (this.#isBroken) return messages;
    this.#chunks.push(chunk);
    this.#bufferedBytes += chunk.length;
    try {
      while (!this.#isBroken) {
        const message = this.#next();
        if (message === undefined) break;
        messages++;
        callback(message);
      }
    } catch (error) {
      this.#fail();
      this.fireError(error instanceof Error ? error : new Error(String(error)));
    }
    return messages;
  }

  #next(): Message | undefined {
    this.#bodyBytes ??= this.#takeHeader();
    if (this.#bodyBytes === undefined || this.#bufferedBytes < this.#bodyBytes) return undefined;
    const body = this.#takeBytes(this.#bodyBytes);
    this.#bodyBytes = undefined;
    return toMessage(JSON.parse(body.toString("utf8")));
  }

  #takeHeader(): number | undefined {
    const bytes = this.#joinChunks();
    const end = bytes.subarray(0, headerLimitBytes).indexOf(headerEnd);
    if (end === -1) {
      if (bytes.length >= headerLimitBytes) throw new Error("it printed output that is not a message");
      return undefined;
    }
    const header = this.#takeBytes(end + headerEnd.length).toString("latin1");
    const length = /^content-length: *(\d+) *\r$/im.exec(header)?.[1];
    if (length === undefined) throw new Error("a message had no Content-Length");
    if (Number(length) > messageLimitBytes) throw new Error(`a message of ${length} bytes is too long`);
    return Number(length);
  }

  #takeBytes(count: number): Buffer {
    const bytes = this.#joinChunks();
    const rest = bytes.subarray(count);
    this.#chunks = rest.length === 0 ? [] : [rest];
    this.#bufferedBytes = rest.length;
    return bytes.subarray(0, count);
  }

  #joinChunks(): Buffer {
    if (this.#chunks.length === 1 && this.#chunks[0]) return this.#chunks[0];
    const joined = Buffer.concat(this.#chunks);
    this.#chunks = [joined];
    return joined;
  }

  #fail(): void {
    this.#isBroken = true;
    this.#chunks = [];
    this.#bufferedBytes = 0;
  }
}

/** The connection validates further; here it must only be a JSON-RPC object. */
function toMessage(value: unknown): Message {
  const version = messageSchema.safeParse(value);
  if (!version.success) throw new Error("it printed output that is not a message");
  return version.data;
}

const messageSchema = z.looseObject({ jsonrpc: z.string() });
