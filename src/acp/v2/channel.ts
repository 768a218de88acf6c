import type { SessionUpdate } from "@agentclientprotocol/sdk/unstable";
import type { MessageId, SessionId } from "../../message/ids.ts";
import type { Outbox } from "../transport/outbox.ts";
import type { Channel } from "../view/session-view.ts";
import { Cancellable } from "./cancellable.ts";
import { getCommand, type DraftUpdate, toDraftUpdates } from "./convert.ts";

/** Sends one session's updates in version 2. */
export class DraftChannel implements Channel {
  readonly #id: string;
  readonly #outbox: Outbox;
  readonly #onUserMessage: (id: MessageId, isSteering: boolean) => void;
  readonly #onBackgroundChanged: () => void;
  readonly cancellable: Cancellable;
  /** Terminals whose command was not sent yet. */
  readonly #withoutCommand = new Set<string>();
  /** Calls that the client shows as running, with their sessions. */
  readonly #running = new Map<string, string>();
  /** Messages that were announced to the client. */
  #known = new Set<string>();
  /** Last sent commands and options; equal ones are not sent again. */
  readonly #lastSent = new Map<string, string>();

  constructor(deps: {
    id: string;
    outbox: Outbox;
    onUserMessage(id: MessageId, isSteering: boolean): void;
    /** Whether the call is running and can be cancelled. */
    isOpenCall(callId: string): boolean;
    onBackgroundChanged(): void;
  }) {
    this.#id = deps.id;
    this.#outbox = deps.outbox;
    this.#onUserMessage = (id, isSteering) => deps.onUserMessage(id, isSteering);
    this.#onBackgroundChanged = () => deps.onBackgroundChanged();
    this.cancellable = new Cancellable((callId) => deps.isOpenCall(callId));
  }

  /** Sends an update in the form of version 2. The state of a child session is also sent under its own id. */
  update(sessionId: SessionId, update: SessionUpdate): void {
    for (const next of toDraftUpdates(update)) {
      this.#sendCommand(sessionId, next);
      this.#send(sessionId, this.cancellable.addCapabilities(next));
      this.#noteStatus(sessionId, next);
      if (next.sessionUpdate === "subagent_update" && next.state)
        this.#send(next.sessionId, { sessionUpdate: "state_update", ...next.state });
    }
  }

  isRunning(callId: string): boolean {
    return this.#running.has(callId);
  }

  /** Shows whether a call waits until something resumes it. Does nothing for a call that has ended. */
  setPaused(callId: string, isPaused: boolean): void {
    const sessionId = this.#running.get(callId);
    if (sessionId === undefined) return;
    const status = isPaused ? "paused" : "in_progress";
    this.#send(sessionId, { sessionUpdate: "tool_call_update", toolCallId: callId, status });
  }

  #noteStatus(sessionId: string, update: DraftUpdate): void {
    if (update.sessionUpdate !== "tool_call_update" || typeof update.status !== "string") return;
    if (update.status === "in_progress") this.#running.set(update.toolCallId, sessionId);
    else this.#running.delete(update.toolCallId);
  }

  /** Sends a version 2 update, unless it repeats known content. */
  sendDraft(update: DraftUpdate): void {
    this.#send(this.#id, update);
  }

  #send(sessionId: string, update: DraftUpdate): void {
    if (!this.#isKnown(update)) this.#outbox.update(sessionId, update);
  }

  /** Marks an update as known because a response contains it. */
  markKnown(update: DraftUpdate): void {
    this.#isKnown(update);
  }

  beginReplay(): void {
    this.#known = new Set();
    this.#running.clear();
  }

  userMessage(id: MessageId, isSteering: boolean): void {
    this.#onUserMessage(id, isSteering);
  }

  backgroundChanged(): void {
    this.#onBackgroundChanged();
  }

  /** Sends the terminal's command, which is complete only after the terminal was announced. */
  #sendCommand(sessionId: SessionId, update: DraftUpdate): void {
    if (
      update.sessionUpdate === "terminal_update" &&
      update.cwd !== undefined &&
      update.command === undefined
    )
      this.#withoutCommand.add(update.terminalId);
    if (update.sessionUpdate !== "tool_call_update") return;
    const command = getCommand(update.rawInput);
    if (command === undefined || !this.#withoutCommand.delete(update.toolCallId)) return;
    this.#send(sessionId, { sessionUpdate: "terminal_update", terminalId: update.toolCallId, command });
  }

  #isKnown(update: DraftUpdate): boolean {
    switch (update.sessionUpdate) {
      case "user_message":
      case "agent_message":
      case "agent_thought":
        return this.#isKnownMessage(`${update.sessionUpdate} ${update.messageId}`);
      case "available_commands_update":
      case "config_option_update": {
        const text = JSON.stringify(update);
        const isSame = this.#lastSent.get(update.sessionUpdate) === text;
        this.#lastSent.set(update.sessionUpdate, text);
        return isSame;
      }
      default:
        return false;
    }
  }

  #isKnownMessage(key: string): boolean {
    const isKnown = this.#known.has(key);
    this.#known.add(key);
    return isKnown;
  }
}
