import { type Deferred, deferred, orWhenAborted } from "../../base/async.ts";
import type { SessionHost } from "../../session/session-host.ts";

/** A client that is connected. */
interface Client {
  readonly host: SessionHost;
  /** Resolves when it disconnected. */
  readonly left: Deferred<"left">;
  /** Whether it can be asked about the session. */
  knows(sessionId: string): boolean;
}

type Given<T> = { readonly value: T } | "left";

/**
 * The host of all sessions of the process: forwards to the client that is connected. Questions wait while no client
 * has opened their session, and are asked again if their client disconnects before it answers.
 */
export class SwitchableHost implements SessionHost {
  #client: Client | undefined;
  /** Resolves when a client can be asked that could not be asked before. */
  #changed = deferred<void>();

  /** Uses a client. It is asked about the sessions for which `knows` returns true. */
  connect(host: SessionHost, knows: (sessionId: string) => boolean = () => true): void {
    this.#client = { host, knows, left: deferred() };
    this.notifyChange();
  }

  /** Lets questions wait for the next client. */
  disconnect(): void {
    this.#client?.left.resolve("left");
    this.#client = undefined;
  }

  /** Asks waiting questions if the client now knows their session. */
  notifyChange(): void {
    this.#changed.resolve();
    this.#changed = deferred();
  }

  ask: SessionHost["ask"] = async (question, signal) => {
    const { sessionId, askedUnder = sessionId } = question;
    const answer = await this.#request(askedUnder, signal, (host) => host.ask(question, signal));
    return answer?.value ?? { reply: "cancelled" };
  };

  askWhy: SessionHost["askWhy"] = async (question, signal) => {
    const { sessionId, askedUnder = sessionId } = question;
    return (await this.#request(askedUnder, signal, (host) => host.askWhy(question, signal)))?.value;
  };

  inquire: SessionHost["inquire"] = async (sessionId, inquiry, signal) => {
    const answer = await this.#request(sessionId, signal, (host) => host.inquire(sessionId, inquiry, signal));
    return answer?.value ?? { outcome: "cancelled" };
  };

  elicit: SessionHost["elicit"] = async (sessionId, elicitation, signal) => {
    const request = (host: SessionHost) => host.elicit(sessionId, elicitation, signal);
    return (await this.#request(sessionId, signal, request))?.value ?? { outcome: "cancelled" };
  };

  userCapabilities: SessionHost["userCapabilities"] = () =>
    this.#client?.host.userCapabilities() ?? { forms: false, urls: false, sampling: false };

  visited: SessionHost["visited"] = (elicitationId) => this.#client?.host.visited(elicitationId);

  buffers: SessionHost["buffers"] = (sessionId) => this.#client?.host.buffers(sessionId) ?? {};

  /** Resolves to the answer of a client; undefined when the signal aborts first. */
  async #request<T>(
    sessionId: string,
    signal: AbortSignal,
    request: (host: SessionHost) => Promise<T>,
  ): Promise<{ readonly value: T } | undefined> {
    for (;;) {
      const client = await this.#findClient(sessionId, signal);
      if (client === undefined) return undefined;
      const answer = request(client.host).then((value): Given<T> => ({ value }));
      const first = await Promise.race([answer, client.left.promise]);
      if (first !== "left") return first;
      answer.catch(() => {});
    }
  }

  /** Waits for a client that knows the session; undefined when the signal aborts first. */
  async #findClient(sessionId: string, signal: AbortSignal): Promise<Client | undefined> {
    while (!signal.aborted) {
      if (this.#client?.knows(sessionId) === true) return this.#client;
      await orWhenAborted(this.#changed.promise, signal, undefined);
    }
    return undefined;
  }
}
