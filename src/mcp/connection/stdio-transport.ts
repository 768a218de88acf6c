import { type JSONRPCMessage, parseJSONRPCMessage, type Transport } from "@modelcontextprotocol/client";
import { once } from "node:events";
import { StringDecoder } from "node:string_decoder";
import { toJson } from "../../base/text/json.ts";
import type { PipedCommand, PipedProcess, PipedProcesses } from "../../workspace/process/piped-process.ts";
import { answeredId, type Line, messageLimitBytes, MessageLines } from "./message-lines.ts";
import { RateLimiter } from "../../base/rate-limiter.ts";

/** A server with this many unread bytes is terminated. */
const unreadLimitBytes = 64 * 1024 * 1024;
/** With this many unread messages, reading from the server pauses. */
const unreadMessages = 1_000;
/** Maximum length of the end of stderr that explains a failure, in characters. */
const errorTailLength = 2_000;
/** Maximum length of a reported line that is not a message, in characters. */
const noiseLength = 200;

export interface StdioDeps {
  processes: PipedProcesses;
  /** Called for lines that are not messages. Must not throw. */
  onNoise(line: string): void;
}

/**
 * Exchanges messages as lines over the stdio of a program. Other lines are ignored, backpressure is respected, and stderr
 * is always read, so that the program never blocks on it.
 */
export class StdioTransport implements Transport {
  onclose?: () => void;
  onerror?: (error: Error) => void;
  onmessage?: (message: JSONRPCMessage) => void;
  readonly #command: PipedCommand;
  readonly #deps: StdioDeps;
  readonly #closing = new AbortController();
  #process: PipedProcess | undefined;
  #errorTail = "";
  /** A terminal repeats it as the first message. */
  #firstSent: string | undefined;
  #isEchoed = false;
  /** Resolves when the program has read its input. */
  #draining: Promise<unknown> | undefined;
  #waiting = 0;

  constructor(command: PipedCommand, deps: StdioDeps) {
    this.#command = command;
    this.#deps = deps;
  }

  /** Whether the program runs in a terminal that repeats its input. Such a terminal also cuts long lines. */
  get isEchoed(): boolean {
    return this.#isEchoed;
  }

  /** The end of the program's stderr. */
  get errorTail(): string {
    return this.#errorTail.trim();
  }

  async start(): Promise<void> {
    const running = await this.#deps.processes.start(this.#command);
    this.#process = running;
    if (this.#closing.signal.aborted) {
      await running.end();
      return;
    }
    this.#keepErrors(running);
    // Errors of the pipe can be ignored: the program ends or is terminated.
    void this.#read(running).then(() => this.close());
    void running.exited.then(() => this.close());
  }

  async send(message: JSONRPCMessage): Promise<void> {
    const input = this.#process?.input;
    if (input === undefined || this.#closing.signal.aborted || !input.writable)
      throw new Error("the server's program has ended");
    if (input.writableLength > unreadLimitBytes) {
      void this.close();
      throw new Error("the server's program does not read what it is sent");
    }
    const line = toJson(message);
    this.#firstSent ??= line;
    if (input.write(`${line}\n`)) return;
    this.#waiting++;
    try {
      await this.#drain(input);
    } finally {
      this.#waiting--;
    }
  }

  /** Returns one shared promise for all pending messages. */
  #drain(input: PipedProcess["input"]): Promise<unknown> {
    this.#draining ??= once(input, "drain", { signal: this.#closing.signal }).finally(() => {
      this.#draining = undefined;
    });
    return this.#draining;
  }

  /** Terminates the program. Resolves when it has ended. */
  async close(): Promise<void> {
    if (!this.#closing.signal.aborted) {
      this.#closing.abort();
      this.onclose?.();
    }
    await this.#process?.end();
  }

  #keepErrors({ errors }: PipedProcess): void {
    const decoder = new StringDecoder("utf8");
    errors.on("data", (chunk: Buffer) => {
      this.#errorTail = (this.#errorTail + decoder.write(chunk)).slice(-errorTailLength);
    });
  }

  async #read({ output }: PipedProcess): Promise<void> {
    const lines = new MessageLines();
    const pace = new RateLimiter();
    try {
      for await (const chunk of output) {
        if (!Buffer.isBuffer(chunk)) continue;
        const found = lines.push(chunk);
        for (const line of found) this.#take(line);
        await pace.count(found.length, chunk.length, this.#closing.signal);
        if (this.#waiting > unreadMessages) await this.#draining;
      }
    } catch (error) {
      if (!this.#closing.signal.aborted) this.onerror?.(toError(error));
    }
  }

  #take(line: Line): void {
    if (this.#closing.signal.aborted) return;
    if (line.kind === "too-long") return this.#answerTooLong(line);
    if (line.text.trim() === "") return undefined;
    if (line.text.trim() === this.#firstSent) {
      this.#isEchoed = true;
      return void this.close();
    }
    const message = parseMessage(line.text);
    if (message === undefined) this.#deps.onNoise(line.text.slice(0, noiseLength));
    else this.onmessage?.(message);
    return undefined;
  }

  /** Fails the request of a dropped answer. */
  #answerTooLong(line: Line & { kind: "too-long" }): void {
    const limit = `more than ${messageLimitBytes / 1024 / 1024} MiB in one message, which was dropped`;
    this.#deps.onNoise(limit);
    const id = answeredId(line);
    if (id === undefined) return;
    this.onmessage?.({ jsonrpc: "2.0", id, error: { code: -32603, message: `it answered with ${limit}` } });
  }
}

function parseMessage(text: string): JSONRPCMessage | undefined {
  try {
    return parseJSONRPCMessage(JSON.parse(text));
  } catch {
    return undefined;
  }
}

function toError(thrown: unknown): Error {
  return thrown instanceof Error ? thrown : new Error(String(thrown));
}
