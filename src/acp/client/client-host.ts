import { type Deferred, deferred, orWhenAborted } from "../../base/async.ts";
import type { Log } from "../../base/log.ts";
import type { SessionId } from "../../message/ids.ts";
import type { SessionHost } from "../../session/session-host.ts";
import type { ClientFeatures } from "../client-capabilities.ts";
import type { ClientPaths } from "../client-paths.ts";
import type { SessionView } from "../view/session-view.ts";
import type { Peer } from "./requester.ts";

/** The client's features and the views of its sessions. */
export interface Client {
  readonly client: ClientFeatures;
  readonly peer: Peer;
  findView(sessionId: string): SessionView | undefined;
  getPaths(sessionId: string): ClientPaths;
}

interface ConnectedClient {
  readonly client: Client;
  /** Resolves when it disconnected. */
  readonly left: Deferred<"left">;
  /** Whether it can be asked about the session. */
  knows(sessionId: string): boolean;
  /** Sessions whose user gave no reason when asked after a rejection, and is not asked again. */
  readonly unexplained: Set<SessionId>;
}

/**
 * The host of all sessions of the process. Questions go to the connected client: they wait until it has opened their
 * session, and are asked again if it disconnects before it answers. A question about a tool call is sent after its call
 * was announced. The code of each kind of question loads with the first one.
 */
export class ClientHost implements SessionHost {
  readonly #log: Log;
  #connected: ConnectedClient | undefined;
  /** Resolves when a client connects or opens a session, so that waiting questions may be asked. */
  #changed = deferred<void>();

  constructor(log: Log) {
    this.#log = log;
  }

  /** Uses a client. It is asked about the sessions for which `knows` returns true. */
  connect(client: Client, knows: (sessionId: string) => boolean = () => true): void {
    this.#connected = { client, knows, left: deferred(), unexplained: new Set() };
    this.notifyChange();
  }

  /** Lets questions wait for the next client. */
  disconnect(): void {
    this.#connected?.left.resolve("left");
    this.#connected = undefined;
  }

  /** Asks waiting questions if the client now knows their session. */
  notifyChange(): void {
    this.#changed.resolve();
    this.#changed = deferred();
  }

  ask: SessionHost["ask"] = async (question, signal) => {
    const { callId, title, sessionId, askedUnder = sessionId } = question;
    const answer = await this.#request(askedUnder, signal, async ({ client }) => {
      const { requestPermission } = await import("./permissions.ts");
      await client.findView(askedUnder)?.announce(callId, title);
      const { requests, features } = this.#toDeps(client);
      return requestPermission(requests, question, { features, paths: client.getPaths(askedUnder) }, signal);
    });
    return answer ?? { reply: "cancelled" };
  };

  askWhy: SessionHost["askWhy"] = async (question, signal) => {
    const { sessionId, askedUnder = sessionId } = question;
    const answer = await this.#request(askedUnder, signal, async ({ client, unexplained }) => {
      const { requests, features } = this.#toDeps(client);
      const isOptional = !features.duplicateOptionKinds;
      if (isOptional && unexplained.has(askedUnder)) return {};
      const { requestReason } = await import("./permissions.ts");
      const reason = await requestReason(requests, question, features, signal);
      if (isOptional && reason === undefined) unexplained.add(askedUnder);
      return { reason };
    });
    return answer?.reason;
  };

  inquire: SessionHost["inquire"] = async (sessionId, inquiry, signal) => {
    const answer = await this.#request(sessionId, signal, async ({ client }) => {
      const { askQuestions } = await import("./questions.ts");
      await client.findView(sessionId)?.announce(inquiry.callId);
      return askQuestions(this.#toDeps(client), sessionId, inquiry, signal);
    });
    return answer ?? { outcome: "cancelled" };
  };

  elicit: SessionHost["elicit"] = async (sessionId, elicitation, signal) => {
    const answer = await this.#request(sessionId, signal, async ({ client }) => {
      const { elicitFromClient } = await import("./elicitations.ts");
      const { callId } = elicitation;
      if (callId !== undefined) await client.findView(sessionId)?.announce(callId);
      return elicitFromClient(this.#toDeps(client), sessionId, elicitation, signal);
    });
    return answer ?? { outcome: "cancelled" };
  };

  userCapabilities: SessionHost["userCapabilities"] = () => {
    const { forms = false, urls = false, isAttended = false } = this.#connected?.client.client ?? {};
    return { forms, urls, sampling: isAttended };
  };

  visited: SessionHost["visited"] = (elicitationId) =>
    this.#connected?.client.peer.requests.completeElicitation(elicitationId);

  buffers: SessionHost["buffers"] = (sessionId) => this.#connected?.client.peer.buffers(sessionId) ?? {};

  #toDeps({ peer, client: features }: Client) {
    return { requests: peer.requests, features, log: this.#log };
  }

  /** Resolves to the answer of a client; undefined when the signal aborts first. */
  async #request<Answer extends object>(
    sessionId: string,
    signal: AbortSignal,
    request: (client: ConnectedClient) => Promise<Answer>,
  ): Promise<Answer | undefined> {
    for (;;) {
      const connected = await this.#findClient(sessionId, signal);
      if (connected === undefined) return undefined;
      const answer = request(connected);
      const first = await Promise.race([answer, connected.left.promise]);
      if (first !== "left") return first;
      answer.catch(() => {});
    }
  }

  /** Waits for a client that knows the session; undefined when the signal aborts first. */
  async #findClient(sessionId: string, signal: AbortSignal): Promise<ConnectedClient | undefined> {
    while (!signal.aborted) {
      if (this.#connected?.knows(sessionId) === true) return this.#connected;
      await orWhenAborted(this.#changed.promise, signal, undefined);
    }
    return undefined;
  }
}
