import type { AnyMessage } from "@agentclientprotocol/sdk/unstable";
import { messageOf } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import { abilitiesOf } from "./client-abilities.ts";
import type { Connection } from "./connection.ts";
import { errorOf } from "./errors.ts";
import { isPlainInitialize } from "./initialize.ts";
import type { Library } from "./library.ts";
import { newSession, type Opening } from "./lifecycle.ts";
import { pickersOf } from "./session-view.ts";
import type { Wire } from "./wire.ts";

export interface ReceptionDeps {
  wire: Wire;
  connection: Connection;
  log: Log;
  loadLibrary: () => Promise<Library>;
  /** Loads what a first prompt needs. Must not throw. */
  warmUp: () => Promise<void>;
  /** Called once, when the client is gone and nothing that it sent waits. */
  end(): void;
}

/**
 * Takes what the client sends. A plain first `session/new` is answered without the protocol library, whose schemas
 * take longer to build than the session does; everything else is the library's, which loads behind that answer or
 * when something needs it.
 */
export class Reception {
  readonly #deps: ReceptionDeps;
  #waiting: AnyMessage[] = [];
  #library: Library | undefined;
  #isLoading = false;
  #isEnded = false;

  constructor(deps: ReceptionDeps) {
    this.#deps = deps;
  }

  receive(message: AnyMessage): void {
    if (this.#library !== undefined) return this.#library.receive(message);
    const request = this.#isLoading ? undefined : toNewSession(message);
    if (request !== undefined && this.#waiting.length > 0) return void this.#create(request);
    // The library must see it too, or it would refuse what comes next.
    this.#waiting.push(message);
    if (!this.#isAnsweredInitialize(message)) this.#load();
  }

  end(): void {
    this.#isEnded = true;
    if (this.#library !== undefined) this.#library.end();
    else if (!this.#isLoading) this.#deps.end();
  }

  #isAnsweredInitialize(message: AnyMessage): boolean {
    const { wire, connection } = this.#deps;
    if (!wire.hasAnswered(message) || !("params" in message) || !isPlainInitialize(message.params))
      return false;
    connection.client = abilitiesOf(message.params);
    return true;
  }

  async #create({ id, params }: NewSessionRequest): Promise<void> {
    const { connection, wire } = this.#deps;
    try {
      const session = await newSession(connection, params, id);
      const result = { sessionId: session.id, ...pickersOf(session, connection.client) };
      await wire.send({ jsonrpc: "2.0", id, result });
    } catch (error) {
      await wire.send({ jsonrpc: "2.0", id, error: errorOf(error) });
    }
    await wire.outbox.flush();
    this.#load();
  }

  #load(): void {
    if (this.#isLoading || this.#isEnded) return;
    this.#isLoading = true;
    const { loadLibrary, warmUp } = this.#deps;
    loadLibrary()
      .then((library) => this.#handOver(library))
      .then(warmUp, (error: unknown) => this.#fail(messageOf(error)));
  }

  /** A file of the program that cannot be read now may be there for the next request. */
  #fail(reason: string): void {
    const { wire, log } = this.#deps;
    log.error("the protocol library did not load", { error: reason });
    this.#isLoading = false;
    this.#waiting = this.#waiting.filter((message) => wire.hasAnswered(message));
    wire.abandon(`A part of the program could not be loaded: ${reason}`);
    if (this.#isEnded) this.#deps.end();
  }

  #handOver(library: Library): void {
    this.#library = library;
    for (const message of this.#waiting.splice(0)) library.receive(message);
    if (this.#isEnded) library.end();
  }
}

interface NewSessionRequest {
  id: string | number;
  params: Opening;
}

/** Anything unusual is left to the library, which checks it against the schema. */
function toNewSession(message: AnyMessage): NewSessionRequest | undefined {
  if (!("method" in message) || message.method !== "session/new" || !("id" in message)) return undefined;
  const { id, params } = message;
  if (typeof id !== "string" && !Number.isInteger(id)) return undefined;
  if (id === null || !isPlainNewSession(params)) return undefined;
  return { id, params };
}

function isPlainNewSession(params: unknown): params is Opening {
  if (typeof params !== "object" || params === null) return false;
  if (!("cwd" in params) || typeof params.cwd !== "string") return false;
  if (!("mcpServers" in params) || !Array.isArray(params.mcpServers) || params.mcpServers.length > 0)
    return false;
  if (!("additionalDirectories" in params)) return true;
  const { additionalDirectories } = params;
  return (
    Array.isArray(additionalDirectories) && additionalDirectories.every((path) => typeof path === "string")
  );
}
