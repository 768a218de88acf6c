import type { AnyMessage, AnyNotification, AnyRequest, Result } from "@agentclientprotocol/sdk/unstable";
import { errorFields } from "../base/error-fields.ts";
import type { Log } from "../base/log.ts";
import { excerpt } from "../base/text/excerpt.ts";
import { isRecord } from "../base/text/record.ts";
import type { Requester } from "./client/requester.ts";
import { invalidRequest, methodNotFound, requestCancelled, SessionInUse, toRequestError } from "./errors.ts";
import { requestsNewerVersion } from "./initialize.ts";
import type { Call, ProtocolVersion, RequestHandler } from "./methods/method-table.ts";
import type { JoinedSessions } from "./reconnect/joined-sessions.ts";
import type { Incoming, MessageReceiver } from "./transport/wire.ts";

export interface DispatcherDeps {
  send: (message: AnyMessage) => unknown;
  /** Receives the client's responses. */
  requester: Requester;
  stable: ProtocolVersion;
  /** The draft of the next version, unless the user disabled it. */
  draft: ProtocolVersion | undefined;
  log: Log;
  /** Called after the response to a request was sent. */
  onAnswered: (method: string) => void;
  /** Called when the client disconnected and the handlers of all its messages were called. */
  onEnd: () => void;
  /** Creates the client's sessions in other processes; without it they are refused. */
  loadJoinedSessions?: (() => Promise<JoinedSessions>) | undefined;
}

/** Maximum characters of a method's name in the log. */
const loggedLength = 100;

/** Calls the handler of each message from the client, in order of arrival. */
export class RequestDispatcher implements MessageReceiver {
  readonly #deps: DispatcherDeps;
  /** A request must see what earlier requests changed. */
  readonly #messages = new TaskRunner();
  /** Running requests by id. */
  readonly #running = new Map<unknown, AbortController>();
  /** Undefined until `initialize` succeeded. */
  #version: ProtocolVersion | undefined;
  /** Whether a request other than `initialize` was handled. */
  #hasServed = false;
  #initializeParams: unknown;
  /** Undefined before the client opened a session that runs in another process. */
  #joined: Promise<JoinedSessions> | undefined;
  #openJoined: JoinedSessions | undefined;

  constructor(deps: DispatcherDeps) {
    this.#deps = deps;
  }

  receive(incoming: Incoming): void {
    this.#messages.run(() => this.#dispatch(incoming));
  }

  end(): void {
    this.#messages.run(() => {
      void this.#joined?.then((joined) => joined.close());
      this.#deps.onEnd();
    });
  }

  #dispatch({ message, isAnswered }: Incoming): void {
    if (!("method" in message)) this.#deps.requester.receive(message);
    else if ("id" in message) void this.#answer(message, isAnswered);
    else this.#notify(message);
  }

  #notify({ method, params }: AnyNotification): void {
    try {
      if (method === "$/cancel_request") this.#cancel(params);
      else if (this.#version !== undefined && this.#openJoined?.notify(method, params) !== true)
        this.#version.notifications.get(method)?.(params);
    } catch (error) {
      this.#log("invalid notification", method, error);
    }
  }

  #cancel(params: unknown): void {
    if (!isRecord(params)) return;
    const { requestId } = params;
    this.#running.get(requestId)?.abort(requestCancelled(requestId));
  }

  async #answer(request: AnyRequest, isAnswered: boolean): Promise<void> {
    const { id, method } = request;
    const version = this.#version ?? this.#selectVersion(request);
    if (!isRequestId(id, version)) {
      const error = invalidRequest("id must be a string or an integer.").toErrorResponse();
      return void this.#deps.send({ jsonrpc: "2.0", id: null, error });
    }
    const controller = new AbortController();
    this.#running.set(id, controller);
    const outcome = await this.#run(request, version, { id, signal: controller.signal });
    if (this.#running.get(id) === controller) this.#running.delete(id);
    if (!isAnswered) this.#deps.send({ jsonrpc: "2.0", id, ...outcome });
    this.#deps.onAnswered(method);
  }

  async #run(request: AnyRequest, version: ProtocolVersion, call: Call): Promise<Result<unknown>> {
    try {
      return { result: (await this.#handle(request, version, call)) ?? null };
    } catch (thrown) {
      const error = toRequestError(thrown, call.signal);
      if (error !== thrown && !call.signal.aborted) this.#log("request failed", request.method, thrown);
      return { error: error.toErrorResponse() };
    }
  }

  #handle(request: AnyRequest, version: ProtocolVersion, call: Call): unknown {
    const { method, params } = request;
    const isInitialize = method === "initialize";
    if (!isInitialize && this.#version === undefined)
      throw invalidRequest(`ACP connection must be initialized before '${method}'`);
    if (isInitialize && this.#hasServed && version.isStrict)
      throw invalidRequest("initialize must not be repeated after other requests");
    this.#hasServed ||= !isInitialize;
    const handle = version.requests.get(method);
    if (handle === undefined) throw methodNotFound(method);
    if (isInitialize) {
      const result = handle(params, call);
      this.#version = version;
      this.#initializeParams = params;
      return result;
    }
    return this.#openJoined?.forward({ method, params }, call.signal) ?? this.#serve(handle, request, call);
  }

  /** Calls the handler. A session that is open in another process is opened there. */
  async #serve(handle: RequestHandler, { method, params }: AnyRequest, call: Call): Promise<unknown> {
    const serve = async () => handle(params, call);
    try {
      return await serve();
    } catch (error) {
      const { loadJoinedSessions } = this.#deps;
      if (!(error instanceof SessionInUse) || loadJoinedSessions === undefined) throw error;
      this.#joined ??= loadJoinedSessions();
      const joined = await this.#joined;
      this.#openJoined = joined;
      const opening = { request: { method, params }, retry: serve, initializeParams: this.#initializeParams };
      return joined.open(error, opening, call.signal);
    }
  }

  /** Returns the version that an `initialize` asks for. */
  #selectVersion({ method, params }: AnyRequest): ProtocolVersion {
    const { stable, draft } = this.#deps;
    return method === "initialize" && requestsNewerVersion(params) ? (draft ?? stable) : stable;
  }

  #log(event: string, method: string, error: unknown): void {
    this.#deps.log.warn(event, { method: excerpt(method, loggedLength), ...errorFields(error) });
  }
}

function isRequestId(id: unknown, { isStrict }: ProtocolVersion): boolean {
  if (typeof id === "string" || Number.isInteger(id)) return true;
  return !isStrict && (id === null || typeof id === "number");
}

/**
 * Runs tasks in order, one per turn of the event loop: what a task does synchronously is done when the next one starts,
 * even if both were added at once.
 */
class TaskRunner {
  readonly #waiting: (() => void)[] = [];
  #isRunning = false;

  run(task: () => void): void {
    this.#waiting.push(task);
    if (!this.#isRunning) this.#runNext();
  }

  #runNext(): void {
    const task = this.#waiting.shift();
    this.#isRunning = task !== undefined;
    if (task === undefined) return;
    setImmediate(() => this.#runNext());
    task();
  }
}
