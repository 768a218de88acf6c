import type { ElicitRequest, ElicitResult } from "@modelcontextprotocol/client";
import { orWhenAborted } from "../../base/async.ts";
import type { Elicit } from "../../message/elicitation.ts";
import { CallClock } from "./call-clock.ts";
import type { Progress } from "./connection.ts";
import type { RequestFailure } from "./failures.ts";

/** The user and the call that a request is made for. */
export interface ServerUser {
  readonly signal: AbortSignal;
  /** The tool call, if there is one. */
  readonly callId?: string | undefined;
  readonly elicit: Elicit;
  onProgress?(progress: Progress): void;
}

/** Maximum number of visited addresses with pending completion. */
const visitsLimit = 100;

type Visit = (RequestFailure & { kind: "visit" })["visits"][number];

/** Routes a server's questions to the user of the running request. */
export class ServerQuestions {
  readonly #server: string;
  readonly #timeoutMs: number;
  readonly #onVisited: (elicitationId: string) => void;
  readonly #uses = new Set<{ user: ServerUser; clock: CallClock }>();
  readonly #expected = new Map<string, () => void>();

  constructor(server: string, timeoutMs: number, onVisited: (elicitationId: string) => void) {
    this.#server = server;
    this.#timeoutMs = timeoutMs;
    this.#onVisited = onVisited;
  }

  /** Runs a request for the user, who receives the server's questions meanwhile. */
  async during<T>(user: ServerUser, request: (clock: CallClock) => Promise<T>): Promise<T> {
    const clock = new CallClock(this.#timeoutMs, user.signal);
    const use = { user, clock };
    this.#uses.add(use);
    try {
      return await request(clock);
    } finally {
      clock.end();
      this.#uses.delete(use);
    }
  }

  /** Asks the user of the latest running request, whose timer is paused meanwhile. */
  async ask(params: ElicitRequest["params"], signal: AbortSignal): Promise<ElicitResult> {
    const use = [...this.#uses].at(-1);
    if (use === undefined) return { action: "cancel" };
    const { user, clock } = use;
    const { toElicitation, toElicitResult } = await import("./elicitation.ts");
    const either = AbortSignal.any([signal, user.signal]);
    const request = toElicitation(this.#server, params, user.callId);
    if (request.mode === "url" && !isWebAddress(request.url)) return { action: "cancel" };
    if (request.mode === "url") this.#expect(request.id, () => {});
    return toElicitResult(await clock.pauseDuring(() => user.elicit(request, either)));
  }

  /** Resolves with whether the user visited all addresses and the server confirmed completion. */
  async visit(visits: readonly Visit[], user: ServerUser): Promise<boolean> {
    for (const visit of visits) if (!(await this.#visitOne(visit, user))) return false;
    return true;
  }

  /** Completes an address that the user was sent to. Ignores others. */
  onElicited(id: string): void {
    const onVisited = this.#expected.get(id);
    if (onVisited === undefined) return;
    this.#expected.delete(id);
    onVisited();
    this.#onVisited(id);
  }

  async #visitOne({ id, url, message }: Visit, user: ServerUser): Promise<boolean> {
    if (!isWebAddress(url)) return false;
    const done = new Promise<void>((resolve) => this.#expect(id, resolve));
    const { callId } = user;
    const request = { server: this.#server, message, callId, mode: "url" as const, url, id };
    const { outcome } = await user.elicit(request, user.signal);
    const isDone = outcome === "accepted" && (await this.#waitFor(done, user.signal));
    this.#expected.delete(id);
    return isDone;
  }

  #expect(id: string, onVisited: () => void): void {
    if (this.#expected.size < visitsLimit) this.#expected.set(id, onVisited);
  }

  async #waitFor(done: Promise<void>, signal: AbortSignal): Promise<boolean> {
    const limit = new CallClock(this.#timeoutMs, signal);
    const isDone = done.then(() => true);
    const waited = await orWhenAborted(isDone, limit.signal, false);
    limit.end();
    return waited;
  }
}

/** Returns whether it is a web address, not a file or a script. */
function isWebAddress(url: string): boolean {
  return URL.canParse(url) && ["https:", "http:"].includes(new URL(url).protocol);
}
