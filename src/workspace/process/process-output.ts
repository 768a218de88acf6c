import { isAscii } from "node:buffer";
import { Duplex, type Readable } from "node:stream";
import { StringDecoder } from "node:string_decoder";
import { deferred, orAfter, type Deferred } from "../../base/async.ts";
import type { TextOrBytes } from "../../base/secrets/text-or-bytes.ts";

/** Reading pauses while this much waits for the reader. */
const WAITING_LIMIT_BYTES = 256 * 1024;
/** Larger chunks are passed on unmerged, because merging copies them. */
const LARGE_CHUNK_BYTES = 16 * 1024;
/** After the shell has ended, its output is complete after this much silence. */
const QUIET_MS = 150;
/** Maximum time for output after the shell's end, without waiting for the reader. */
const DRAIN_LIMIT_MS = 1_000;
/** Output of a background process that is read and discarded before its pipe is closed. */
const BACKGROUND_LIMIT_BYTES = 64 * 1024 * 1024;

/**
 * Ends our side of a program's output. Node's pipes have two directions: a program that reads from its own output would
 * wait for us. On Windows it waits, because a pipe cannot be ended in one direction there: Node would close all of it.
 */
export function endWriting(output: Readable, platform = process.platform): void {
  if (platform !== "win32" && output instanceof Duplex) output.end();
}

/**
 * Passes a pipe's output to an awaited reader. Output that arrives while the reader is busy is merged, and a
 * slow reader pauses the pipe, so that memory is bounded.
 */
export class ProcessOutput {
  readonly #stream: Readable;
  readonly #read: (chunk: TextOrBytes) => Promise<void>;
  readonly #decoder = new StringDecoder("utf8");
  /** Whether the decoder waits for the rest of a character. */
  #isInCharacter = false;
  #waiting: Buffer[] = [];
  #waitingBytes = 0;
  #wake: Deferred<void> = deferred();
  #ended = false;
  #idle: Deferred<void> | undefined;
  #reading = false;
  readonly #done: Promise<void>;

  constructor(stream: Readable, read: (chunk: TextOrBytes) => Promise<void>) {
    this.#stream = stream;
    this.#read = read;
    stream.on("data", (chunk: Buffer) => this.#take(chunk));
    stream.once("close", () => this.#end());
    stream.once("end", () => this.#end());
    // A broken pipe ends the output normally.
    stream.once("error", () => this.#end());
    this.#done = this.#pump().catch((error: unknown) => {
      this.abandon();
      throw error;
    });
  }

  /** Rejects when the reader does. Does not resolve while a process has the pipe open. */
  get done(): Promise<void> {
    return this.#done;
  }

  /**
   * Call when the shell has ended: reads the rest of the pipe, then releases it.
   * `held` is true if another process still has the pipe open.
   */
  async drain(): Promise<{ held: boolean }> {
    let leftMs = DRAIN_LIMIT_MS;
    while (leftMs > 0) {
      await this.#readerIdle();
      if (this.#ended) break;
      const start = performance.now();
      const more = this.#wake.promise.then(() => true);
      if (!(await orAfter(more, Math.min(QUIET_MS, leftMs), false))) break;
      leftMs -= performance.now() - start;
    }
    const held = !this.#ended;
    if (held) this.#release();
    await this.#done;
    return { held };
  }

  /** Stops reading and passes nothing more on. */
  abandon(): void {
    this.#stream.destroy();
    this.#waiting = [];
    this.#end();
    this.#becomeIdle();
  }

  #readerIdle(): Promise<void> {
    if (!this.#reading && this.#waiting.length === 0) return Promise.resolve();
    this.#idle ??= deferred();
    return this.#idle.promise;
  }

  #take(chunk: Buffer): void {
    if (this.#ended) return;
    this.#waiting.push(chunk);
    this.#waitingBytes += chunk.length;
    if (this.#waitingBytes >= WAITING_LIMIT_BYTES) this.#stream.pause();
    this.#wake.resolve();
  }

  #end(): void {
    this.#ended = true;
    this.#wake.resolve();
  }

  async #pump(): Promise<void> {
    while (true) {
      await this.#wake.promise;
      if (this.#waiting.length === 0) break;
      const chunk = this.#decode(this.#takeNext());
      this.#reading = true;
      if (chunk.length > 0) await this.#read(chunk);
      if (this.#waiting.length === 0) this.#becomeIdle();
    }
    const rest = this.#decoder.end();
    if (rest !== "") await this.#read(rest);
  }

  #decode(bytes: Buffer): TextOrBytes {
    if (!this.#isInCharacter && isAscii(bytes)) return bytes;
    this.#isInCharacter = (bytes.at(-1) ?? 0) >= 0x80;
    return this.#decoder.write(bytes);
  }

  /** Marks the reader as idle. */
  #becomeIdle(): void {
    this.#reading = false;
    this.#idle?.resolve();
    this.#idle = undefined;
  }

  #takeNext(): Buffer {
    const large = this.#waiting.findIndex(({ length }) => length >= LARGE_CHUNK_BYTES);
    const taken = this.#waiting.splice(0, large === -1 ? this.#waiting.length : Math.max(1, large));
    const bytes = taken.length === 1 && taken[0] ? taken[0] : Buffer.concat(taken);
    this.#waitingBytes -= bytes.length;
    if (this.#waiting.length === 0 && !this.#ended) this.#wake = deferred();
    this.#stream.resume();
    return bytes;
  }

  /** Keeps reading for a background process: a closed pipe would end it, a full one would block it. */
  #release(): void {
    this.#end();
    let unseenBytes = 0;
    this.#stream.on("data", (chunk: Buffer) => {
      unseenBytes += chunk.length;
      if (unseenBytes > BACKGROUND_LIMIT_BYTES) this.#stream.destroy();
    });
    if ("unref" in this.#stream && typeof this.#stream.unref === "function") this.#stream.unref();
  }
}
