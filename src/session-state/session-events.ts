import { errorFields } from "../base/error-fields.ts";
import type { Log } from "../base/log.ts";
import type { Emit } from "../message/event.ts";
import { newRequestId, type SessionId } from "../message/ids.ts";
import type { AgentError, SessionInfo } from "../message/message.ts";
import type { Advice, Answer, Ask, GateCall, Question } from "../permission/gate.ts";
import type { PluginEvent } from "../plugin/author.ts";
import {
  toPluginEvents,
  toPermissionRequest,
  toPermissionQuestion,
  toPluginSession,
  type SessionStatus,
} from "../plugin/plugin-type-mapping.ts";
import type { Plugins } from "../plugin/plugins.ts";
import type { ChangedFile } from "../conversation/session-diff.ts";
import type { SessionPlugins } from "./session-plugins.ts";

/** Shows a session to the user. */
export interface SessionViewer {
  receive: Emit;
  /** Resolves when it can receive more. */
  waitUntilReady(): Promise<void>;
}

/** Emits the events of a session to its viewer, if it has one, and to its plugins, if one of them listens. */
export class SessionEvents {
  readonly #plugins: SessionPlugins;
  readonly #infoOf: (id: SessionId) => SessionInfo | undefined;
  readonly #parent: SessionEvents | undefined;
  readonly #log: Log;
  #viewer: SessionViewer | undefined;

  constructor(deps: {
    /** Shared by a session and its children. */
    plugins: SessionPlugins;
    /** Returns the stored info of a live session. */
    infoOf(id: SessionId): SessionInfo | undefined;
    /** The events of the parent session, for a child. */
    parent: SessionEvents | undefined;
    log: Log;
  }) {
    this.#plugins = deps.plugins;
    this.#infoOf = (id) => deps.infoOf(id);
    this.#parent = deps.parent;
    this.#log = deps.log;
  }

  /** Sets the viewer, which receives the events of this session and its children. */
  showTo(viewer: SessionViewer): void {
    this.#viewer = viewer;
  }

  /** Removes the viewer; if one is given, only this one. */
  hide(viewer = this.#viewer): void {
    if (this.#viewer === viewer) this.#viewer = undefined;
  }

  /** Emits a change of the session or of one of its children. */
  readonly emit: Emit = (event) => {
    try {
      this.#viewer?.receive(event);
    } catch (error) {
      this.#log.error("update failed", errorFields(error));
    }
    const plugins = this.#listeners();
    if (plugins === undefined) return;
    for (const each of toPluginEvents(event, this.#infoOf)) plugins.event(each);
  };

  /** Resolves when the viewer can receive more. Awaited by readers of long output and long answers. */
  async waitUntilReady(): Promise<void> {
    await (this.#parent ?? this.#viewer)?.waitUntilReady();
  }

  created(info: SessionInfo): void {
    this.#send(() => sessionEvent("session.created", info));
  }

  deleted(info: SessionInfo): void {
    this.#send(() => sessionEvent("session.deleted", info));
  }

  status(sessionID: SessionId, status: SessionStatus): void {
    this.#send(() => ({ type: "session.status", properties: { sessionID, status } }));
  }

  /** Sends how a turn ended, and that the session waits for the next message. */
  idle(sessionID: SessionId, error: AgentError | undefined): void {
    if (error !== undefined) this.#send(() => ({ type: "session.error", properties: { sessionID, error } }));
    this.status(sessionID, { type: "idle" });
    this.#send(() => ({ type: "session.idle", properties: { sessionID } }));
  }

  /** Sends which files the session changed since it began. */
  diff(sessionID: SessionId, files: readonly ChangedFile[]): void {
    this.#send(() => ({ type: "session.diff", properties: { sessionID, diff: files } }));
  }

  mcpToolsChanged(server: string): void {
    this.#send(() => ({ type: "mcp.tools.changed", properties: { server } }));
  }

  /** Returns the plugins' advice on a call before the user is asked; undefined without such a hook. */
  advice(call: GateCall, status: "allow" | "ask", signal: AbortSignal): Promise<Advice> | undefined {
    const plugins = this.#plugins.current;
    if (!plugins?.has("permission.ask")) return undefined;
    return plugins.permission(toPermissionQuestion(call), status, signal);
  }

  /** Asks the user, and sends the question and its answer. */
  async ask(ask: Ask, question: Question, signal: AbortSignal): Promise<Answer> {
    const requestID = newRequestId();
    this.#send(() => ({
      type: "permission.asked",
      properties: { ...toPermissionRequest(question, requestID) },
    }));
    const answer = await ask(question, signal);
    const { sessionId: sessionID, callId: callID } = question;
    this.#send(() => ({
      type: "permission.replied",
      properties: { sessionID, requestID, callID, reply: answer.reply },
    }));
    return answer;
  }

  #send(make: () => PluginEvent): void {
    this.#listeners()?.event(make());
  }

  #listeners(): Plugins | undefined {
    const plugins = this.#plugins.current;
    return plugins?.has("event") ? plugins : undefined;
  }
}

function sessionEvent(type: "session.created" | "session.deleted", info: SessionInfo): PluginEvent {
  return { type, properties: { sessionID: info.id, info: toPluginSession(info) } };
}
