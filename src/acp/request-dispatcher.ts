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
  /** Loads modules for the first prompt. Must not throw. */
  warmUp: () => Promise<void>;
  /** Loads modules for the first tool call. Must not throw. */
  warmUpCalls: () => Promise<void>;
  /** Called once: after the first turn, or when the warm-up time has passed. */
  settle: () => void;
  /** Called once, when the client disconnected and no message of it is waiting. */
  end(): void;
}

/** Idle time on the wire before modules are loaded in advance: no prompt is starting and no text is streaming. */
const quietMs = 250;

/**
 * Dispatches the client's messages. Simple requests (session lists, sessions without MCP servers, prompts of plain
 * text) are handled without the protocol SDK, because loading it takes longer than everything else before the first
 * model request. The SDK handles all other messages; it loads in the background or with the first message that needs it.
 */
export class RequestDispatcher {
  readonly #deps: DispatcherDeps;
  /** Running requests that are handled without the SDK. */
  readonly #running = new Map<RequestId, AbortController>();
  #waiting: AnyMessage[] = [];
  #sdk: SdkConnection | undefined;
  #loading: Promise<SdkConnection | undefined> | undefined;
  #warmingUp: Promise<void> | undefined;
  /** Whether the client was answered in the stable protocol version before the SDK was loaded. */
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
    // The SDK must see `initialize` too, or it would reject the next request.
    this.#waiting.push(message);
    if (!this.#applyInitialize(message)) void this.sdk();
  }

  end(): void {
    this.#isEnded = true;
    if (this.#sdk !== undefined) this.#sdk.end();
    else if (this.#loading === undefined) this.#deps.end();
  }

  /** Why {@link sdk} is undefined: the client disconnected, or a {@link UserError} if loading failed. */
  get loadError(): Error {
    return this.#loadError;
  }

  /** Loads the SDK. Resolves to undefined if the client is gone or loading failed. */
  sdk(): Promise<SdkConnection | undefined> {
    if (this.#sdk !== undefined) return Promise.resolve(this.#sdk);
    if (this.#isEnded && this.#loading === undefined) return Promise.resolve(undefined);
    this.#loading ??= this.#load();
    return this.#loading;
  }

  /** Handles simple requests directly even after loading (a millisecond less), in order with the others. */
  #receiveWithSdk(sdk: SdkConnection, message: AnyMessage): void {
    // A second `initialize` may request another version.
    if ("method" in message && message.method === "initialize") this.#isPlainClient = false;
    const task = this.#isPlainClient ? this.#createPlainTask(message) : undefined;
    sdk.runInOrder(() => {
      if (task !== undefined) void this.#answer(task);
      else if (!this.#abort(message)) sdk.receive(message);
    });
  }

  /** Whether only an already answered `initialize` is waiting for the SDK. */
  #isBeforeSdkRequests(): boolean {
    return this.#waiting.length > 0 && this.#waiting.every((message) => this.#deps.wire.hasAnswered(message));
  }

  /** Applies the client's features if this is the already answered `initialize`. Returns whether it is. */
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
      wire.send({ jsonrpc: "2.0", id, result: await run(controller.signal) });
    } catch (error) {
      wire.send({ jsonrpc: "2.0", id, error: toErrorResponse(error) });
    }
    if (this.#running.get(id) === controller) this.#running.delete(id);
    await after?.();
  }

  /** Cancels a turn without waiting for the SDK. */
  #cancel(message: AnyMessage): boolean {
    if (!("method" in message) || message.method !== "session/cancel" || "id" in message) return false;
    const { params } = message;
    if (typeof params !== "object" || params === null || !("sessionId" in params)) return false;
    if (typeof params.sessionId !== "string") return false;
    cancelTurn(this.#deps.connection, params.sessionId);
    return true;
  }

  /** Aborts a request that is handled here; the SDK does not know it. */
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

  /** Loads modules in advance, after the response to the first session request. */
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

  /** Rejects the waiting requests. The next request tries to load the SDK again. */
  #fail(reason: unknown): void {
    const { wire, log } = this.#deps;
    log.error("protocol SDK load failed", errorFields(reason));
    this.#loadError = new UserError(importProblem(reason), { cause: reason });
    this.#loading = undefined;
    const refused = this.#waiting.filter((message) => !wire.hasAnswered(message));
    this.#waiting = this.#waiting.filter((message) => wire.hasAnswered(message));
    const error = toErrorResponse(this.#loadError);
    for (const message of refused)
      if ("method" in message && "id" in message) wire.send({ jsonrpc: "2.0", id: message.id, error });
    if (this.#isEnded) this.#deps.end();
  }

  #handOver(sdk: SdkConnection): void {
    this.#sdk = sdk;
    for (const message of this.#waiting.splice(0)) sdk.runInOrder(() => sdk.receive(message));
    if (this.#isEnded) sdk.end();
  }
}

/** A request that is handled without the SDK. The SDK gets all unusual requests and validates them. */
interface PlainTask {
  readonly id: RequestId;
  readonly run: (signal: AbortSignal) => Promise<unknown>;
  readonly after?: () => Promise<void> | void;
}
