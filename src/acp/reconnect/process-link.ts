import type { Socket } from "node:net";
import { setImmediate as nextTurn } from "node:timers/promises";
import type { AnyMessage, AnyRequest } from "@agentclientprotocol/sdk/unstable";
import type { Log } from "../../base/log.ts";
import { isRecord } from "../../base/text/record.ts";
import { Requester } from "../client/requester.ts";
import { internalError, requestCancelled, toRequestError } from "../errors.ts";
import { readMessages } from "../transport/inbox.ts";
import type { Wire } from "../transport/wire.ts";

export interface ProcessLinkDeps {
  readonly socket: Socket;
  /** The connection to the client. */
  readonly wire: Pick<Wire, "send" | "outbox">;
  /** Requests to the client. */
  readonly client: Requester;
  readonly log: Log;
}

/** A connection to the process that runs a session: passes requests, updates and questions on, in their order. */
export class ProcessLink {
  readonly #deps: ProcessLinkDeps;
  readonly #requester: Requester;
  /** Aborts when the process is gone. */
  readonly #gone = new AbortController();
  /** Requests of the process that the client has not answered, by id. */
  readonly #asked = new Map<unknown, AbortController>();
  #received: AnyMessage[] = [];
  #isWorking = false;

  constructor(deps: ProcessLinkDeps) {
    this.#deps = deps;
    const { socket, log } = deps;
    this.#requester = new Requester((message) => this.#write(message), log);
    readMessages(socket, {
      message: (message) => this.#receive(message),
      batch: () => {},
      invalid: (_, code, reason) => log.warn("invalid message of another process", { code, reason }),
      end: () => this.#end(),
    });
    socket.on("close", () => this.#end());
  }

  get isOpen(): boolean {
    return !this.#gone.signal.aborted;
  }

  /** Sends a request to the process. Rejects with its error, or when it ends. */
  async request(method: string, params: unknown, signal: AbortSignal): Promise<unknown> {
    const until = AbortSignal.any([signal, this.#gone.signal]);
    try {
      return await this.#requester.request(method, isRecord(params) ? params : {}, until);
    } catch (error) {
      if (this.isOpen || signal.aborted) throw error;
      throw internalError("The process that ran the session has ended. Load the session again.");
    }
  }

  notify(method: string, params: object): void {
    this.#requester.notify(method, params);
  }

  close(): void {
    this.#deps.socket.destroy();
    this.#end();
  }

  #receive(message: AnyMessage): void {
    this.#received.push(message);
    if (!this.#isWorking) void this.#passOn();
  }

  /** Passes messages on in order, as fast as the client reads. */
  async #passOn(): Promise<void> {
    const { socket, wire } = this.#deps;
    this.#isWorking = true;
    socket.pause();
    for (let message = this.#received.shift(); message; message = this.#received.shift()) {
      this.#handle(message);
      // The response is sent to the client a few microtasks later, before later messages.
      await ("method" in message ? wire.outbox.waitUntilReady() : nextTurn());
    }
    this.#isWorking = false;
    socket.resume();
  }

  #handle(message: AnyMessage): void {
    if (!("method" in message)) this.#requester.receive(message);
    else if ("id" in message) void this.#ask(message);
    else if (message.method === "$/cancel_request") this.#withdraw(message.params);
    else this.#deps.wire.send(message);
  }

  /** Sends a request of the process to the client. */
  async #ask({ id, method, params }: AnyRequest): Promise<void> {
    const controller = new AbortController();
    this.#asked.set(id, controller);
    try {
      const given = isRecord(params) ? params : {};
      const result = (await this.#deps.client.request(method, given, controller.signal)) ?? null;
      this.#write({ jsonrpc: "2.0", id, result });
    } catch (thrown) {
      const error = toRequestError(thrown, controller.signal).toErrorResponse();
      this.#write({ jsonrpc: "2.0", id, error });
    } finally {
      this.#asked.delete(id);
    }
  }

  #withdraw(params: unknown): void {
    if (!isRecord(params)) return;
    const { requestId } = params;
    this.#asked.get(requestId)?.abort(requestCancelled(requestId));
  }

  #write(message: AnyMessage): void {
    if (this.isOpen) this.#deps.socket.write(`${JSON.stringify(message)}\n`);
  }

  #end(): void {
    if (!this.isOpen) return;
    this.#gone.abort();
    for (const asked of this.#asked.values()) asked.abort(requestCancelled(null));
  }
}
