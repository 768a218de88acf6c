import { spawn, type ChildProcessWithoutNullStreams } from "node:child_process";
import type { AnyMessage, Stream } from "@agentclientprotocol/sdk";
import { WireLog, type WireId, type WireMessage } from "../wire/wire-log.ts";

/** Maximum stored characters of stderr. */
const stderrLimit = 1_000_000;

export interface Exit {
  code: number | null;
  signal: NodeJS.Signals | null;
}

/** The agent's process, with a record of every line in both directions. */
export class AgentProcess {
  wire = new WireLog();
  /** For the SDK's client, without the responses to raw requests. */
  stream: Stream;
  readonly exited: Promise<Exit>;
  /** Resolves when the process has exited and its pipes are closed, which a child process may delay. */
  readonly closed: Promise<void>;
  stderr = "";
  readonly #child: ChildProcessWithoutNullStreams;
  readonly #rawIds = new Set<WireId>();
  #stopReading = (): void => {};

  constructor(command: readonly string[], options: { env: Record<string, string>; cwd: string }) {
    const [file = "", ...args] = command;
    this.#child = spawn(file, args, { ...options, stdio: "pipe", windowsHide: true });
    this.exited = new Promise((resolve, reject) => {
      this.#child.once("error", reject);
      this.#child.once("exit", (code, signal) => resolve({ code, signal }));
    });
    this.closed = new Promise((resolve) => this.#child.once("close", () => resolve()));
    this.#child.stderr.setEncoding("utf8").on("data", (text: string) => {
      this.stderr = (this.stderr + text).slice(-stderrLimit);
    });
    // A write to an agent that has exited fails; its exit is reported instead.
    this.#child.stdin.on("error", (error) => (this.stderr += `\n[stdin: ${error.message}]\n`));
    this.stream = { readable: this.#incoming(), writable: this.#outgoing() };
  }

  get pid(): number | undefined {
    return this.#child.pid;
  }

  /** Writes bytes unchanged, recorded line by line. */
  async write(bytes: Uint8Array): Promise<void> {
    for (const { message } of this.wire.receive("toAgent", bytes)) {
      if (message?.kind === "request") this.#rawIds.add(message.id);
    }
    await this.#push(bytes);
  }

  /** Ends the record, and starts another one that contains only the beginning of the connection. */
  renewRecord(): void {
    this.wire = this.wire.beginning();
    this.stderr = "";
  }

  /** Replaces the current client. */
  renewStream(): void {
    this.#stopReading();
    this.stream = { readable: this.#incoming(), writable: this.#outgoing() };
  }

  endInput(): void {
    this.#child.stdin.end();
  }

  /** Stops reading, like a client that does not listen. */
  closeErrors(): void {
    this.#child.stderr.destroy();
  }

  /** Closes all pipes, like a broken connection or a killed client. */
  hangUp(): void {
    this.wire.cut = true;
    this.#child.stdin.destroy();
    this.#child.stdout.destroy();
    this.#child.stderr.destroy();
  }

  pauseReading(): void {
    this.#child.stdout.pause();
  }

  resumeReading(): void {
    this.#child.stdout.resume();
  }

  kill(signal: NodeJS.Signals = "SIGKILL"): void {
    this.wire.cut = true;
    this.#child.kill(signal);
  }

  #incoming(): ReadableStream<AnyMessage> {
    return new ReadableStream({
      start: (controller) => {
        const receive = (bytes: Buffer) => {
          for (const { message } of this.wire.receive("fromAgent", bytes)) {
            if (message && this.#isForClient(message)) controller.enqueue(asMessage(message));
          }
        };
        const stop = () => {
          this.#child.stdout.off("data", receive);
          this.#child.off("close", stop);
          controller.close();
        };
        this.#child.stdout.on("data", receive);
        this.#child.once("close", stop);
        this.#stopReading = stop;
      },
    });
  }

  #outgoing(): WritableStream<AnyMessage> {
    return new WritableStream({
      write: async (message) => {
        this.wire.record("toAgent", message);
        await this.#push(Buffer.from(`${JSON.stringify(message)}\n`));
      },
    });
  }

  #isForClient(message: WireMessage): boolean {
    return message.kind !== "response" || (message.id !== null && !this.#rawIds.delete(message.id));
  }

  #push(bytes: Uint8Array): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#child.stdin.write(bytes, (error) => (error ? reject(error) : resolve()));
    });
  }
}

/** The message in the SDK's type, without fields that the log did not understand. */
function asMessage(message: WireMessage): AnyMessage {
  const { json, kind } = message;
  if (kind === "notification") return { jsonrpc: "2.0", method: message.method, params: json.params };
  if (kind === "request")
    return { jsonrpc: "2.0", id: message.id, method: message.method, params: json.params };
  if (!message.error) return { jsonrpc: "2.0", id: message.id, result: message.result };
  const { code, message: text, data } = message.error;
  return { jsonrpc: "2.0", id: message.id, error: { code: Number(code), message: String(text), data } };
}
