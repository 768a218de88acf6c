import { UserError } from "../base/errors.ts";
import { isSessionId, newSessionId, type SessionId } from "../message/ids.ts";
import type { SessionInfo } from "../message/message.ts";
import type { SessionStore } from "../storage/session-store.ts";
import type { ChildSession } from "../tasks/child-session.ts";
import type { SessionOpener } from "./session-opener.ts";
import type { Session } from "./session.ts";

export interface ChildSessionsDeps {
  store(): Promise<SessionStore>;
  version: string;
  opener: Pick<SessionOpener, "open">;
}

/** The running child sessions of this process. */
export class ChildSessions {
  readonly #deps: ChildSessionsDeps;
  readonly #live = new Map<SessionId, Session>();

  constructor(deps: ChildSessionsDeps) {
    this.#deps = deps;
  }

  /** Returns a child session while its task runs. */
  live(id: SessionId): Session | undefined {
    return this.#live.get(id);
  }

  /** Opens a new child of a live session, or continues an earlier one. It is not listed and closes with its task. */
  async open(child: ChildSession, parent: Session): Promise<Session> {
    const { agent, model, title, callId: parentCallId, project } = child;
    const now = Date.now();
    const settings = { agent, ...(model && { model }), parentCallId };
    const earlier = child.id === undefined ? undefined : await this.#loadEarlier(child.id, parent);
    const info: SessionInfo = {
      id: newSessionId(),
      projectId: project.id,
      parentId: parent.id,
      cwd: project.workspace.cwd,
      title,
      titleSource: "fallback",
      cost: 0,
      time: { created: now, updated: now },
      version: this.#deps.version,
      ...earlier,
      ...settings,
    };
    if (earlier === undefined) await (await this.#deps.store()).create(info);
    const amend = (stored: SessionInfo) => ({ ...stored, ...settings });
    const opened = await this.#deps.opener.open(info.id, project, {
      amend,
      parent: { child, session: parent },
    });
    if (opened.status === "opened") return this.#register(opened.session);
    const why = opened.status === "busy" ? "it is still running" : "it no longer exists";
    throw new UserError(`The task ${info.id} cannot continue: ${why}.`);
  }

  #register(session: Session): Session {
    this.#live.set(session.id, session);
    void session.closed.then(() => this.#live.delete(session.id));
    return session;
  }

  async #loadEarlier(id: string, parent: Session): Promise<SessionInfo> {
    const info = isSessionId(id) ? await (await this.#deps.store()).load(id) : undefined;
    if (info?.parentId === parent.id) return info;
    throw new UserError(
      `Task "${id}" not found in this session. Call task without task_id to start a new one.`,
    );
  }
}
