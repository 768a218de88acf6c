import { errorFields } from "../base/error-fields.ts";
import { setTimeout as sleep } from "node:timers/promises";
import type { AnyMessage } from "@agentclientprotocol/sdk/unstable";
import { importProblem, UserError } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import type { Session } from "../session/session.ts";
import { parseClientFeatures } from "./client-capabilities.ts";
import type { AcpConnection } from "./connection.ts";
import { toErrorResponse, requestCancelled } from "./errors.ts";
import { isPlainInitialize } from "./initialize.ts";
import type { SdkConnection } from "./sdk-connection.ts";
import { listSessions, loadSession, newSession, resumeSession } from "./methods/lifecycle.ts";
import {
  isPlainList,
  isPlainNewSession,
  isPlainPrompt,
  isPlainStoredSession,
  isRequestId,
  type RequestId,
} from "./request-guards.ts";
import { cancelTurn, promptTurn } from "./methods/prompt-turn.ts";
import { createPickers } from "./view/config-options.ts";
import type { Wire } from "./transport/wire.ts";

export interface DispatcherDeps {
  wire: Wire;
  connection: AcpConnection;
  log: Log;
  loadSdk: () => Promise<SdkConnection>;
  /** Loads what a first prompt needs. Must not throw. */
  warmUp: () => Promise<void>;
  /** Loads what a first call of a tool needs. Must not throw. */
  warmUpCalls: () => Promise<void>;
  /** Called once behind a first turn, or when that has had its time. */
  settle: () => void;
  /** Called once, when the client is gone and nothing that it sent waits. */
  end(): void;
}

/**
 * How long nothing must have been sent before what nobody needs yet is loaded: a first prompt has had the time to be on
 * its way, and no text streams.
 */
const quietMs = 250;

/**
 * Takes what the client sends. Lists, plain requests for a session and prompts of plain text are answered without the
 * protocol library, whose loading and schemas take longer than all else until a first request is with the provider.
 * Everything else is the library's, which loads behind what comes first or when something needs it.
 */
export class RequestDispatcher {
  readonly #deps: DispatcherDeps;
  /** The requests that are answered here. */
  readonly #running = new Map<RequestId, AbortController>();
  #waiting: AnyMessage[] = [];
  #sdk: SdkConnection | undefined;
  #loading: Promise<SdkConnection | undefined> | undefined;
  #warmingUp: Promise<void> | undefined;
  /** Whether the client was answered in the stable version, before the library. */
  #isPlainClient = false;
  #isEnded = false;
  #isSettled = false;
  #isPrepared = false;
  #loadError = new Error("The client is gone.");

  constructor(deps: DispatcherDeps) {
    this.#deps = deps;
  }

  receive(message: AnyMessage): void {
    if (this.#sdk !== undefined) return this.#receiveWithSdk(this.#sdk, message);
    if (this.#abort(message)) return;
    const isFirst = this.#isBeforeSdkRequests();
    if (isFirst && this.#cancel(message)) return;
    const task = isFirst ? this.#createPlainTask(message) : undefined;
    if (task !== undefined) return void this.#answer(task);
    // The library must see it too, or it would refuse what comes next.
    this.#waiting.push(message);
    if (!this.#applyInitialize(message)) void this.sdk();
  }

  end(): void {
    this.#isEnded = true;
    if (this.#sdk !== undefined) this.#sdk.end();
    else if (this.#loading === undefined) this.#deps.end();
  }

  /** Why there is no {@link sdk}, for whoever wanted to ask the client; a {@link UserError} where that is our own fault. */
  get loadError(): Error {
    return this.#loadError;
  }

  /** The protocol library, for whoever asks the client; undefined where it cannot be had. */
  sdk(): Promise<SdkConnection | undefined> {
    if (this.#sdk !== undefined) return Promise.resolve(this.#sdk);
    if (this.#isEnded && this.#loading === undefined) return Promise.resolve(undefined);
    this.#loading ??= this.#load();
    return this.#loading;
  }

  /** Plain requests cost a millisecond more by way of the library; they keep their place among the others. */
  #receiveWithSdk(sdk: SdkConnection, message: AnyMessage): void {
    // Who introduces itself anew may want another version.
    if ("method" in message && message.method === "initialize") this.#isPlainClient = false;
    const task = this.#isPlainClient ? this.#createPlainTask(message) : undefined;
    sdk.runInOrder(() => {
      if (task !== undefined) void this.#answer(task);
      else if (!this.#abort(message)) sdk.receive(message);
    });
  }

  /** Whether nothing waits for the library but an `initialize` that is answered. */
  #isBeforeSdkRequests(): boolean {
    return this.#waiting.length > 0 && this.#waiting.every((message) => this.#deps.wire.hasAnswered(message));
  }

  /** Whether this is the `initialize` that was answered already; what it says of the client counts from now on. */
  #applyInitialize(message: AnyMessage): boolean {
    const { wire, connection } = this.#deps;
    if (!wire.hasAnswered(message) || !("params" in message) || !isPlainInitialize(message.params))
      return false;
    connection.client = parseClientFeatures(message.params);
    this.#isPlainClient = true;
    return true;
  }

  #createPlainTask(message: AnyMessage): PlainTask | undefined {
    if (!("method" in message) || !("id" in message) || !isRequestId(message.id)) return undefined;
    const { id, method, params } = message;
    const { connection } = this.#deps;
    if (method === "session/list" && isPlainList(params))
      return { id, run: () => listSessions(connection, params) };
    if (method === "session/prompt" && isPlainPrompt(params))
      return { id, run: (signal) => promptTurn(connection, params, signal), after: () => this.#settle() };
    const opening = (run: PlainTask["run"]) => ({ id, run, after: () => this.#prepare() });
    const pickers = (session: Session) => createPickers(session, connection.client);
    if (method === "session/new" && isPlainNewSession(params))
      return opening(async () => {
        const session = await newSession(connection, params, id);
        return { sessionId: session.id, ...pickers(session) };
      });
    if (method === "session/load" && isPlainStoredSession(params))
      return opening(async (signal) => pickers(await loadSession(connection, params, id, signal)));
    if (method === "session/resume" && isPlainStoredSession(params))
      return opening(async () => pickers(await resumeSession(connection, params, id)));
    return undefined;
  }

  async #answer({ id, run, after }: PlainTask): Promise<void> {
    const { wire } = this.#deps;
    const controller = new AbortController();
    this.#running.set(id, controller);
    try {
      await wire.send({ jsonrpc: "2.0", id, result: await run(controller.signal) });
    } catch (error) {
      await wire.send({ jsonrpc: "2.0", id, error: toErrorResponse(error) });
    }
    if (this.#running.get(id) === controller) this.#running.delete(id);
    await after?.();
  }

  /** A turn that is to end does not wait for the library. */
  #cancel(message: AnyMessage): boolean {
    if (!("method" in message) || message.method !== "session/cancel" || "id" in message) return false;
    const { params } = message;
    if (typeof params !== "object" || params === null || !("sessionId" in params)) return false;
    if (typeof params.sessionId !== "string") return false;
    cancelTurn(this.#deps.connection, params.sessionId);
    return true;
  }

  /** The library does not know of the requests that are answered here. */
  #abort(message: AnyMessage): boolean {
    if (this.#running.size === 0 || !("method" in message) || message.method !== "$/cancel_request")
      return false;
    const { params } = message;
    if (typeof params !== "object" || params === null || !("requestId" in params)) return false;
    const { requestId } = params;
    const running = isRequestId(requestId) ? this.#running.get(requestId) : undefined;
    running?.abort(requestCancelled(requestId));
    return running !== undefined;
  }

  /** Behind the answer to a first session. */
  async #prepare(): Promise<void> {
    await this.#deps.wire.outbox.flush();
    if (this.#isEnded || this.#isPrepared) return;
    const { outbox } = this.#deps.wire;
    await this.#warmUp();
    await outbox.waitUntilIdle(quietMs);
    this.#isPrepared = (await this.sdk()) !== undefined;
    await outbox.waitUntilIdle(quietMs);
    if (!this.#isEnded) await this.#deps.warmUpCalls();
  }

  #warmUp(): Promise<void> {
    this.#warmingUp ??= this.#deps
      .warmUp()
      .then(() => sleep(quietMs))
      .then(() => this.#settle());
    return this.#warmingUp;
  }

  /** Behind a first turn, which is made of loading, or when it has had its time. */
  #settle(): void {
    if (!this.#isSettled) this.#deps.settle();
    this.#isSettled = true;
  }

  async #load(): Promise<SdkConnection | undefined> {
    try {
      const sdk = await this.#deps.loadSdk();
      this.#handOver(sdk);
      void this.#warmUp();
      return sdk;
    } catch (error) {
      this.#fail(error);
      return undefined;
    }
  }

  /** A file of the program that cannot be read now may be there for the next request. */
  #fail(reason: unknown): void {
    const { wire, log } = this.#deps;
    log.error("the protocol library did not load", errorFields(reason));
    this.#loadError = new UserError(importProblem(reason), { cause: reason });
    this.#loading = undefined;
    const refused = this.#waiting.filter((message) => !wire.hasAnswered(message));
    this.#waiting = this.#waiting.filter((message) => wire.hasAnswered(message));
    const error = toErrorResponse(this.#loadError);
    for (const message of refused)
      if ("method" in message && "id" in message) void wire.send({ jsonrpc: "2.0", id: message.id, error });
    if (this.#isEnded) this.#deps.end();
  }

  #handOver(sdk: SdkConnection): void {
    this.#sdk = sdk;
    for (const message of this.#waiting.splice(0)) sdk.runInOrder(() => sdk.receive(message));
    if (this.#isEnded) sdk.end();
  }
}

/** A request that is answered without the library. Anything unusual is left to it, which checks it against the schema. */
interface PlainTask {
  readonly id: RequestId;
  readonly run: (signal: AbortSignal) => Promise<unknown>;
  readonly after?: () => Promise<void> | void;
}
