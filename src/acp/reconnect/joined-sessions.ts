import { sleep } from "../../base/async.ts";
import { errorFields } from "../../base/error-fields.ts";
import { UserError } from "../../base/errors.ts";
import type { Log } from "../../base/log.ts";
import { isRecord } from "../../base/text/record.ts";
import type { Requester } from "../client/requester.ts";
import { internalError, SessionInUse } from "../errors.ts";
import type { Wire } from "../transport/wire.ts";
import { ProcessLink } from "./process-link.ts";
import { connectToProcess, type SocketPlace } from "./session-socket.ts";

/** A request of the client; its params are not validated. */
export interface ClientRequest {
  readonly method: string;
  readonly params: unknown;
}

/** A request that opens a session which another process has open. */
export interface Opening {
  readonly request: ClientRequest;
  /** Opens the session in this process. Rejects with {@link SessionInUse} while the other one has it. */
  readonly retry: () => Promise<unknown>;
  /** The client's params of `initialize`. */
  readonly initializeParams: unknown;
}

export interface JoinedSessionsDeps {
  readonly place: SocketPlace;
  readonly wire: Pick<Wire, "send" | "outbox">;
  readonly requester: Requester;
  readonly log: Log;
}

/** Time for the other process to notice that its client disconnected, or to end. */
const waitMs = 1_000;
const pauseMs = 50;

/** Methods about a session that need no open session: each process can do them. */
const localMethods: ReadonlySet<string> = new Set(["session/fork", "session/list"]);
/** Methods after which the client no longer has the session. */
const closingMethods: ReadonlySet<string> = new Set(["session/close", "session/delete", "session/archive"]);

/** The client's sessions that run in other processes. Requests about them are forwarded there. */
export class JoinedSessions {
  readonly #deps: JoinedSessionsDeps;
  readonly #links = new Map<number, ProcessLink>();
  readonly #sessions = new Map<string, ProcessLink>();
  #isClosed = false;

  constructor(deps: JoinedSessionsDeps) {
    this.#deps = deps;
  }

  /** Opens a session in the process that has it, or in this one if the other one closes it meanwhile. */
  async open(
    inUse: SessionInUse,
    { request, retry, initializeParams }: Opening,
    signal: AbortSignal,
  ): Promise<unknown> {
    const deadline = performance.now() + waitMs;
    for (let newest = inUse; ;) {
      const link = await this.#connect(newest.pid, initializeParams, signal);
      if (link !== undefined) return this.#openThere(link, newest.sessionId, request, signal);
      if (performance.now() > deadline || signal.aborted) throw newest;
      await sleep(pauseMs, signal);
      try {
        return await retry();
      } catch (error) {
        if (!(error instanceof SessionInUse)) throw error;
        newest = error;
      }
    }
  }

  /** Forwards a request about a session of another process; undefined if it is about something else. */
  forward({ method, params }: ClientRequest, signal: AbortSignal): Promise<unknown> | undefined {
    const sessionId = getSessionId(params);
    const link = this.#find(sessionId);
    if (sessionId === undefined || link === undefined || localMethods.has(method)) return undefined;
    return this.#forward(link, { method, params }, sessionId, signal);
  }

  /** Forwards a notification; returns false if it is about something else. */
  notify(method: string, params: unknown): boolean {
    const link = this.#find(getSessionId(params));
    if (link === undefined || !isRecord(params)) return false;
    link.notify(method, params);
    return true;
  }

  close(): void {
    this.#isClosed = true;
    for (const link of this.#links.values()) link.close();
  }

  /** A session whose process has ended can be opened again. */
  #find(sessionId: string | undefined): ProcessLink | undefined {
    const link = sessionId === undefined ? undefined : this.#sessions.get(sessionId);
    return link?.isOpen === true ? link : undefined;
  }

  /** Returns undefined if the process does not listen or refuses. */
  async #connect(
    pid: number | undefined,
    initializeParams: unknown,
    signal: AbortSignal,
  ): Promise<ProcessLink | undefined> {
    if (pid === undefined || this.#isClosed) return undefined;
    const known = this.#links.get(pid);
    if (known?.isOpen === true) return known;
    const { place, wire, requester, log } = this.#deps;
    try {
      const socket = await connectToProcess(place, pid);
      if (socket === undefined) return undefined;
      const link = new ProcessLink({ socket, wire, client: requester, log });
      this.#links.set(pid, link);
      await link.request("initialize", initializeParams, signal);
      return link;
    } catch (error) {
      if (error instanceof UserError) throw internalError(error.message);
      log.info("process of a session refused the connection", { pid, ...errorFields(error) });
      return undefined;
    }
  }

  async #openThere(
    link: ProcessLink,
    sessionId: string,
    request: ClientRequest,
    signal: AbortSignal,
  ): Promise<unknown> {
    // Requests that follow at once belong there too.
    this.#sessions.set(sessionId, link);
    try {
      return await link.request(request.method, request.params, signal);
    } catch (error) {
      this.#forget(sessionId);
      throw error;
    }
  }

  async #forward(
    link: ProcessLink,
    { method, params }: ClientRequest,
    sessionId: string,
    signal: AbortSignal,
  ): Promise<unknown> {
    const result = await link.request(method, params, signal);
    if (closingMethods.has(method)) this.#forget(sessionId);
    return result;
  }

  /** Ends the connection with its last session, so that the other process can end. */
  #forget(sessionId: string): void {
    const link = this.#sessions.get(sessionId);
    this.#sessions.delete(sessionId);
    if (link !== undefined && ![...this.#sessions.values()].includes(link)) link.close();
  }
}

function getSessionId(params: unknown): string | undefined {
  if (!isRecord(params)) return undefined;
  const { sessionId } = params;
  return typeof sessionId === "string" ? sessionId : undefined;
}
