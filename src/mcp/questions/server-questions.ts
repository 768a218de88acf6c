import type {
  CreateMessageRequest,
  CreateMessageResult,
  ElicitRequest,
  ElicitResult,
} from "@modelcontextprotocol/client";
import { orWhenAborted } from "../../base/async.ts";
import type { SamplingOutcome, ServerAnswers } from "../../message/sampling.ts";
import { CallClock } from "../connection/call-clock.ts";
import type { Progress } from "../connection/connection.ts";
import type { RequestFailure } from "../connection/failures.ts";

/** The user and the call that a request is made for. */
export interface ServerUser extends ServerAnswers {
  readonly signal: AbortSignal;
  /** The tool call, if there is one. */
  readonly callId?: string | undefined;
  onProgress?(progress: Progress): void;
}

/** Maximum number of visited addresses with pending completion. */
const visitsLimit = 100;
/** Maximum number of requests to the model during one call. */
const samplesLimit = 20;

/** A running request. */
interface Use {
  readonly user: ServerUser;
  readonly clock: CallClock;
  /** Number of requests to the model. */
  samples: number;
  /** Visits that end with the request. */
  readonly visits: string[];
}

type Visit = (RequestFailure & { kind: "visit" })["visits"][number];

/** Routes a server's questions to the user of the running request. */
export class ServerQuestions {
  readonly #server: string;
  /** The server's name with a digest of its settings. */
  readonly #identity: string;
  readonly #timeoutMs: number;
  readonly #onVisited: (elicitationId: string) => void;
  readonly #uses = new Set<Use>();
  readonly #expected = new Map<string, () => void>();

  constructor(
    server: { name: string; identity: string },
    timeoutMs: number,
    onVisited: (elicitationId: string) => void,
  ) {
    this.#server = server.name;
    this.#identity = server.identity;
    this.#timeoutMs = timeoutMs;
    this.#onVisited = onVisited;
  }

  /** Runs a request for the user, who receives the server's questions meanwhile. */
  async during<T>(user: ServerUser, request: (clock: CallClock) => Promise<T>): Promise<T> {
    const clock = new CallClock(this.#timeoutMs, user.signal);
    const use: Use = { user, clock, samples: 0, visits: [] };
    this.#uses.add(use);
    try {
      return await request(clock);
    } finally {
      clock.end();
      this.#uses.delete(use);
      for (const id of use.visits) this.#onVisited(id);
    }
  }

  /** Asks the user of the latest running request, whose timer is paused meanwhile. */
  async ask(params: ElicitRequest["params"], signal: AbortSignal): Promise<ElicitResult> {
    const use = [...this.#uses].at(-1);
    if (use === undefined) return { action: "cancel" };
    const { user, clock } = use;
    const { hasVisitId, toElicitation, toElicitResult } = await import("./elicitation.ts");
    const either = AbortSignal.any([signal, user.signal]);
    const request = toElicitation(this.#server, params, user.callId);
    if (request.mode === "url" && !isWebAddress(request.url)) return { action: "cancel" };
    if (request.mode === "url" && hasVisitId(params)) this.#expect(request.id, () => {});
    else if (request.mode === "url" && use.visits.length < visitsLimit) use.visits.push(request.id);
    return toElicitResult(await clock.pauseDuring(() => user.elicit(request, either)));
  }

  /** Asks the model of the latest running request's session. Rejects with an error for the server if it gets no answer. */
  async sample(params: CreateMessageRequest["params"], signal: AbortSignal): Promise<CreateMessageResult> {
    const use = [...this.#uses].at(-1);
    const { toSampling, toSamplingResult } = await import("./sampling.ts");
    if (use === undefined) return toSamplingResult(refuse("no call is running"));
    if (++use.samples > samplesLimit)
      return toSamplingResult(refuse(`a call may ask the model ${samplesLimit} times`));
    const { user, clock } = use;
    const either = AbortSignal.any([signal, user.signal]);
    const server = { name: this.#server, identity: this.#identity };
    const sampling = await toSampling(server, params, either);
    return toSamplingResult(await clock.pauseDuring(() => user.sample(sampling, either)));
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

const refuse = (reason: string): SamplingOutcome => ({ outcome: "refused", reason });

/** Returns whether it is a web address, not a file or a script. */
function isWebAddress(url: string): boolean {
  return URL.canParse(url) && ["https:", "http:"].includes(new URL(url).protocol);
}
