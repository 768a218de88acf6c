import type { Socket } from "node:net";
import { addAnswer } from "../../conversation/command-messages.ts";
import { deferred } from "../../base/async.ts";
import { errorFields } from "../../base/error-fields.ts";
import type { Log } from "../../base/log.ts";
import type { SessionId } from "../../message/ids.ts";
import type { Session } from "../../session/session.ts";
import type { Sessions } from "../../session/sessions.ts";
import type { ClientHost } from "../client/client-host.ts";
import { listenForProcesses, type ListeningSocket, type SocketPlace } from "./session-socket.ts";

/** A client that joined through the socket. */
export interface JoinedClient {
  /** Resolves when it disconnected. */
  readonly closed: Promise<void>;
  /** Whether it has opened the session or is opening it. */
  holds(sessionId: string): boolean;
}

export interface DisconnectedTurnsDeps {
  readonly sessions: Pick<Sessions, "allLive" | "close">;
  readonly host: ClientHost;
  readonly place: SocketPlace;
  /** Time for which a turn continues without a client. */
  readonly minutes: number;
  /** Serves the process at the other end of the socket. `onOpened` is called for each session that it opened. */
  serve(socket: Socket, onOpened: (sessionId: string) => void): Promise<JoinedClient>;
  readonly log: Log;
}

/**
 * Lets running turns continue after their client disconnected, and another process join them:
 * - one client is connected at a time; the next one may connect when it is gone;
 * - a turn that no client has joined is cancelled when its time is over;
 * - a session without a turn and without a client is closed, so that other processes can open it.
 */
export class DisconnectedTurns {
  readonly #deps: DisconnectedTurnsDeps;
  readonly #ended = deferred<void>();
  /** When the turns without a client are cancelled, by session. */
  readonly #deadlines = new Map<SessionId, NodeJS.Timeout>();
  /** Turns whose time is over, until they have ended. */
  readonly #cancelled = new Map<SessionId, Promise<void>>();
  #client: JoinedClient | undefined;
  /** Whether a connection is being served or set up. */
  #isTaken = false;

  constructor(deps: DisconnectedTurnsDeps) {
    this.#deps = deps;
  }

  /** Resolves when no turn runs and no client is connected. */
  async run(): Promise<void> {
    this.#onDisconnected();
    const socket = await this.#listen();
    await this.#ended.promise;
    for (const deadline of this.#deadlines.values()) clearTimeout(deadline);
    await socket?.close();
  }

  /** A turn that cannot be joined continues nevertheless. */
  async #listen(): Promise<ListeningSocket | undefined> {
    try {
      return await listenForProcesses(this.#deps.place, (socket) => void this.#connect(socket));
    } catch (error) {
      this.#deps.log.warn("turn cannot be joined", errorFields(error));
      return undefined;
    }
  }

  async #connect(socket: Socket): Promise<void> {
    if (this.#isTaken) return void socket.destroy();
    this.#isTaken = true;
    try {
      this.#client = await this.#deps.serve(socket, (sessionId) => this.#onOpened(sessionId));
      await this.#client.closed;
    } catch (error) {
      this.#deps.log.error("joined client failed", errorFields(error));
      socket.destroy();
    }
    this.#client = undefined;
    this.#isTaken = false;
    this.#onDisconnected();
  }

  #onOpened(sessionId: string): void {
    this.#deps.host.notifyChange();
    for (const [id, deadline] of this.#deadlines)
      if (id === sessionId) {
        clearTimeout(deadline);
        this.#deadlines.delete(id);
      }
  }

  #onDisconnected(): void {
    const { host, sessions } = this.#deps;
    host.disconnect();
    for (const session of sessions.allLive) {
      session.events.hide();
      void this.#follow(session);
    }
    this.#endIfIdle();
  }

  /** Waits until the session's turns have ended, at most until their time is over. */
  async #follow(session: Session): Promise<void> {
    const { sessions, log } = this.#deps;
    try {
      if (session.isBusy) this.#startDeadline(session);
      await session.idle();
      await this.#cancelled.get(session.id);
      clearTimeout(this.#deadlines.get(session.id));
      this.#deadlines.delete(session.id);
      if (this.#client?.holds(session.id) !== true) await sessions.close(session.id);
    } catch (error) {
      log.error("session without client not closed", errorFields(error));
    }
    this.#endIfIdle();
  }

  #startDeadline(session: Session): void {
    const { minutes, log } = this.#deps;
    if (this.#deadlines.has(session.id)) return;
    const cancel = () => {
      this.#deadlines.delete(session.id);
      const cancelled = cancelFor(session, createReason(minutes))
        .catch((error: unknown) => log.error("turn without client not ended", errorFields(error)))
        .finally(() => this.#cancelled.delete(session.id));
      this.#cancelled.set(session.id, cancelled);
    };
    this.#deadlines.set(session.id, setTimeout(cancel, minutes * 60_000));
  }

  #endIfIdle(): void {
    const isBusy = this.#deps.sessions.allLive.some((session) => session.isBusy);
    if (!this.#isTaken && !isBusy) this.#ended.resolve();
  }
}

/** Cancels all turns and adds the reason to the conversation, for the user only. Does nothing without a turn. */
async function cancelFor(session: Session, reason: string): Promise<void> {
  if (!session.isBusy) return;
  session.cancel();
  await session.idle();
  const { transcript } = session;
  const question = transcript.messages.findLast(({ info }) => info.role === "user")?.info;
  if (question?.role !== "user") return;
  await addAnswer(transcript, question, reason);
  await session.stored();
}

function createReason(minutes: number): string {
  const time = minutes === 1 ? "1 minute" : `${minutes} minutes`;
  return `The turn was cancelled: its editor disconnected, and no other one joined it within ${time}. Send a message to continue.`;
}
