import type { Readable, Writable } from "node:stream";
import type { AnyMessage } from "@agentclientprotocol/sdk/unstable";
import { deferred, type Deferred } from "../../base/async.ts";
import { Batches, batchLimit, sortBatch } from "./batches.ts";
import { isRecord } from "../../base/text/record.ts";
import { getId, readMessages } from "./inbox.ts";
import {
  createInitializeResult,
  type ProgramInfo,
  normalizeVersion,
  requestsNewerVersion,
} from "../initialize.ts";
import { Outbox } from "./outbox.ts";

/** A message of the client. An `initialize` may be answered already. */
export interface Incoming {
  readonly message: AnyMessage;
  readonly isAnswered: boolean;
}

/** Receives the client's messages. */
export interface MessageReceiver {
  receive(incoming: Incoming): void;
  /** Called once, when the client disconnected. */
  end(): void;
}

/** The JSON-RPC connection to the client. Answers `initialize` at once and queues messages until a handler is connected. */
export class Wire {
  readonly outbox: Outbox;
  /** Resolves when the first message arrived (and was answered if it is `initialize`) or the client disconnected. */
  readonly started: Promise<void>;
  readonly #waiting: Incoming[] = [];
  #receiver: MessageReceiver | undefined;
  #isFirst = true;
  #start: () => void = () => undefined;
  #isEnded = false;
  #requestsNewerVersion = false;
  /** Ids of the client's unanswered requests. */
  readonly #unanswered = new Set<string | number>();
  #settled: Deferred<void> | undefined;
  readonly #batches = new Batches();
  /** True after a response to `initialize` selected protocol version 2, which has batches. */
  #hasBatches = false;

  constructor(streams: { input: Readable; output: Writable; program: ProgramInfo }) {
    this.outbox = new Outbox(streams.output);
    this.started = new Promise((resolve) => (this.#start = resolve));
    readMessages(streams.input, {
      message: (message) => this.#receiveMessage(message, streams.program),
      invalid: (id, code, message) => this.outbox.send(toError(id, code, message)),
      batch: (entries) => this.#receiveBatch(entries, streams.program),
      end: () => this.#end(),
    });
    void this.outbox.closed.then(() => this.#end());
  }

  /** Whether the client requests a newer protocol version than the stable one. Known after {@link started}. */
  get requestsNewerVersion(): boolean {
    return this.#requestsNewerVersion;
  }

  /** Delivers the queued and all later messages. */
  connect(receiver: MessageReceiver): void {
    this.#receiver = receiver;
    for (const incoming of this.#waiting.splice(0)) receiver.receive(incoming);
    if (this.#isEnded) receiver.end();
  }

  /** Sends a response or a request. */
  send(message: AnyMessage): void {
    return isAnswer(message) ? this.#answer(message) : this.outbox.send(message);
  }

  #answer(message: Answer): void {
    const { id } = message;
    this.#markAnswered(id);
    this.#hasBatches ||= selectsVersionTwo(message);
    if (!this.#batches.has(id)) return this.outbox.send(message);
    return this.#sendAll(this.#batches.collect(id, message));
  }

  /** Resolves when every received request is answered. */
  async settled(): Promise<void> {
    if (this.#unanswered.size === 0) return;
    this.#settled ??= deferred<void>();
    await this.#settled.promise;
  }

  /** Answers every open request with an error and stops sending; used when the process must exit. */
  failUnanswered(reason: string): void {
    const error = { code: -32603, message: reason, data: { details: reason } };
    for (const id of this.#unanswered) this.send({ jsonrpc: "2.0", id, error });
    this.outbox.seal();
  }

  #markAnswered(id: string | number | null): void {
    if (id !== null) this.#unanswered.delete(id);
    if (this.#unanswered.size === 0) this.#settled?.resolve();
  }

  /** Handles each entry like a single message; only the responses wait for each other. */
  #receiveBatch(entries: readonly unknown[], program: ProgramInfo): void {
    const refusal = this.#checkBatch(entries);
    if (refusal !== undefined) return this.outbox.send(toError(null, -32600, refusal));
    const { messages, requests, errors: refused } = sortBatch(entries, this.#unanswered);
    this.#sendAll(this.#batches.begin(requests, refused));
    for (const message of messages) this.#receiveMessage(message, program);
  }

  #checkBatch(entries: readonly unknown[]): string | undefined {
    if (!this.#hasBatches) return "JSON-RPC batches are supported in protocol version 2 only.";
    if (entries.length <= batchLimit) return undefined;
    return `A batch may have at most ${batchLimit} messages, not ${entries.length}.`;
  }

  #sendAll(answers: readonly AnyMessage[]): void {
    if (answers.length > 0) this.outbox.sendAll(answers);
  }

  #receiveMessage(given: AnyMessage, program: ProgramInfo): void {
    const message = isInitialize(given) ? { ...given, params: normalizeVersion(given.params) } : given;
    const id = "method" in message ? getId(message) : null;
    if (id !== null) this.#unanswered.add(id);
    const isAnswered = this.#isFirst && this.#answerInitialize(message, program);
    this.#isFirst = false;
    if (this.#receiver === undefined) this.#waiting.push({ message, isAnswered });
    else this.#receiver.receive({ message, isAnswered });
    this.#start();
  }

  /** Answers an `initialize` whose response needs no other module. Returns whether it is one. */
  #answerInitialize(message: AnyMessage, program: ProgramInfo): boolean {
    if (!isInitialize(message) || !isRecord(message.params)) return false;
    this.#requestsNewerVersion = requestsNewerVersion(message.params);
    const id = getId(message);
    // The setting that disables a newer version is not loaded yet.
    if (this.#requestsNewerVersion || id === null) return false;
    const result = createInitializeResult(program, message.params);
    this.send({ jsonrpc: "2.0", id, result });
    return true;
  }

  #end(): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    this.#start();
    this.#receiver?.end();
  }
}

type Answer = Exclude<AnyMessage, { method: string }>;

function isInitialize(message: AnyMessage): message is AnyMessage & { method: string; params?: unknown } {
  return "method" in message && message.method === "initialize" && "id" in message;
}

function isAnswer(message: AnyMessage): message is Answer {
  return "id" in message && !("method" in message);
}

function selectsVersionTwo(answer: Answer): boolean {
  if (!("result" in answer) || typeof answer.result !== "object" || answer.result === null) return false;
  return "protocolVersion" in answer.result && answer.result.protocolVersion === 2;
}

function toError(id: string | number | null, code: number, message: string): AnyMessage {
  return { jsonrpc: "2.0", id, error: { code, message } };
}
