import type { BackgroundWork } from "@agentclientprotocol/sdk/experimental/v2/unstable";
import type { Session } from "../../session/session.ts";
import type { AcpConnection } from "../connection.ts";
import { createClientOptions } from "../view/config-options.ts";
import { listCommands } from "../view/updates.ts";
import { DraftChannel } from "./channel.ts";
import { toCommands, toOptions } from "./convert.ts";
import { Turns } from "./turns.ts";

/** Version 2 state per session. */
export class DraftSessions {
  readonly #connection: AcpConnection;
  readonly #known = new WeakMap<Session, DraftSession>();

  constructor(connection: AcpConnection) {
    this.#connection = connection;
  }

  get(session: Session): DraftSession {
    const known = this.#known.get(session) ?? new DraftSession(session, this.#connection);
    this.#known.set(session, known);
    return known;
  }

  async endTurns(reason: string): Promise<void> {
    for (const session of this.#connection.openSessions) this.get(session).turns.abort(reason);
  }

  /** Returns the context of a request for a session, or for one of its child sessions. */
  getRequestContext(sessionId: string) {
    const view = this.#connection.getView(this.#findOpened(sessionId));
    const { turns, channel } = this.get(view.session);
    const setPaused = (callId: string, isPaused: boolean) =>
      view.sendNowOrLater("background", () => channel.setPaused(callId, isPaused));
    return { turns, isRunning: (callId: string) => channel.isRunning(callId), setPaused };
  }

  /** Returns the session that the client opened: the session itself or the one that it is a child of. */
  #findOpened(sessionId: string): string {
    if (this.#connection.findView(sessionId) !== undefined) return sessionId;
    const parentId = this.#connection.findChild(sessionId)?.info.parentId;
    return parentId === undefined ? sessionId : this.#findOpened(parentId);
  }
}

export class DraftSession {
  readonly channel: DraftChannel;
  readonly turns: Turns;
  readonly #session: Session;
  readonly #connection: AcpConnection;

  constructor(session: Session, connection: AcpConnection) {
    this.#session = session;
    this.#connection = connection;
    this.turns = new Turns(
      (update) => this.channel.sendDraft(update),
      () => this.#background(),
    );
    this.channel = new DraftChannel({
      id: session.id,
      outbox: connection.outbox,
      onUserMessage: (id, isSteering) => this.turns.onMessageStored(id, isSteering),
      isOpenCall: (callId) => session.openCalls.has(callId) || session.jobs.findRunning(callId) !== undefined,
      onBackgroundChanged: () => this.channel.sendDraft(this.turns.state),
    });
  }

  /** Creates the pickers of a response and marks them as known to the client. */
  pickers() {
    const configOptions = toOptions(createClientOptions(this.#session, this.#connection.client));
    const availableCommands = toCommands(listCommands(this.#session));
    this.channel.markKnown({ sessionUpdate: "config_option_update", configOptions });
    this.channel.markKnown({ sessionUpdate: "available_commands_update", availableCommands });
    return { configOptions, availableCommands };
  }

  /** Sends the current state to a client that opened the session, after the queued updates of its turns. */
  sendState(): void {
    this.#connection.findView(this.#session.id)?.state.releaseTurn();
    this.channel.sendDraft(this.turns.state);
  }

  /** A command is listed as its terminal. */
  #background(): BackgroundWork[] {
    const calls = this.#connection.findView(this.#session.id)?.background ?? [];
    return calls.map(({ callId, isTerminal }) =>
      isTerminal ? { type: "terminal", terminalId: callId } : { type: "tool_call", toolCallId: callId },
    );
  }
}
