import { realpath } from "node:fs/promises";
import { KeyedSerial } from "../base/async.ts";
import { UserError } from "../base/errors.ts";
import { newSessionId, type SessionId } from "../message/ids.ts";
import type { GivenPrompt, Message, SessionInfo } from "../message/message.ts";
import type { SessionPage, SessionQuery, SessionRow } from "../storage/session-list.ts";
import { ChildSessions } from "./child-sessions.ts";
import { copyMessages, type ForkPoint, inheritInfo, collectMessages } from "./fork.ts";
import type { Folders, Project } from "../conversation/project.ts";
import { type OpenResult, SessionOpener, type SessionOpenerDeps } from "./session-opener.ts";
import type { Session } from "./session.ts";
import { withoutReverted } from "../conversation/visible-messages.ts";

export interface SessionsDeps extends Omit<SessionOpenerDeps, "live" | "infoOf" | "onOpened" | "openChild"> {
  version: string;
}

export type ForkResult =
  | { status: "forked"; session: Session }
  | { status: "missing" }
  | { status: "no such message" };

/** Warnings that are kept for the next session; older ones are in the log. */
const warningLimit = 20;

/** All sessions: those that live in this process, and the stored ones. */
export class Sessions {
  readonly #deps: SessionsDeps;
  readonly #live = new Map<SessionId, Session>();
  readonly #children: ChildSessions;
  readonly #opening = new KeyedSerial();
  readonly #opener: SessionOpener;
  /** What nobody could be told yet. */
  #warnings: string[] = [];

  constructor(deps: SessionsDeps) {
    this.#deps = deps;
    this.#opener = new SessionOpener({
      ...deps,
      live: (id) => this.live(id),
      infoOf: (id) => (this.live(id) ?? this.#children.live(id))?.info,
      onOpened: (session) => this.#live.set(session.id, session),
      openChild: (child, parent) => this.#children.open(child, parent),
    });
    this.#children = new ChildSessions({ ...deps, opener: this.#opener });
  }

  /** The session if it is live in this process. */
  live(id: SessionId): Session | undefined {
    return this.#live.get(id);
  }

  /** A child session while its task runs. */
  child(id: SessionId): Session | undefined {
    return this.#children.live(id);
  }

  /** A new session, stored before it is answered, so that it can be listed, loaded and removed at once. */
  async create(folders: Folders, givenPrompt?: GivenPrompt): Promise<Session> {
    const project = await this.#deps.openProject(folders);
    const info = { ...this.#newInfo(project, folders), ...(givenPrompt && { givenPrompt }) };
    return this.#opener.create(info, project);
  }

  /** A new session with what was said in another one, all of it or up to a message of it. */
  async fork(id: SessionId, folders: Folders, point?: ForkPoint): Promise<ForkResult> {
    const store = await this.#deps.store();
    const source = this.#live.get(id)?.info ?? (await store.load(id));
    if (source === undefined) return { status: "missing" };
    const messages = await collectMessages(this.history(id), point);
    if (messages === undefined) return { status: "no such message" };
    const project = await this.#deps.openProject(folders);
    const info = { ...this.#newInfo(project, folders), ...inheritInfo(source) };
    await store.create(info);
    try {
      await copyMessages(store, info.id, messages);
      return { status: "forked", session: await this.#openNew(info, project) };
    } catch (error) {
      await this.remove(info.id);
      throw error;
    }
  }

  #newInfo(project: Project, folders: Folders): SessionInfo {
    const now = Date.now();
    return {
      id: newSessionId(),
      projectId: project.id,
      cwd: project.workspace.cwd,
      ...(folders.additionalDirectories.length > 0 && {
        additionalDirectories: [...folders.additionalDirectories],
      }),
      agent: project.defaultAgent,
      cost: 0,
      time: { created: now, updated: now },
      version: this.#deps.version,
    };
  }

  async #openNew(info: SessionInfo, project: Project): Promise<Session> {
    const opened = await this.#opener.open(info.id, project);
    if (opened.status !== "opened")
      throw new UserError(`The new session ${info.id} could not be opened: ${opened.status}.`);
    return opened.session;
  }

  /** Opens a stored session, or answers the live one; an idle one is opened anew where its folders change. */
  open(id: SessionId, folders?: Folders): Promise<OpenResult> {
    return this.#opening.run(id, async () => {
      const live = this.#live.get(id);
      if (live !== undefined && (live.isBusy || (await hasFolders(live, folders))))
        return { status: "opened", session: live, notice: undefined };
      await this.#closeLive(id);
      const info = await this.#load(id, folders);
      if (info === undefined) return { status: "missing" };
      const additionalDirectories = [...(folders?.additionalDirectories ?? info.additionalDirectories ?? [])];
      const project = await this.#deps.openProject({ cwd: folders?.cwd ?? info.cwd, additionalDirectories });
      const { cwd } = project.workspace;
      const amend = (stored: SessionInfo) => ({
        ...moveToFolder(omitArchived(stored), cwd),
        additionalDirectories,
      });
      return this.#addWarnings(await this.#opener.open(id, project, { amend }));
    });
  }

  /** A session whose damaged file alone said where it worked is taken to work where the client opens it. */
  async #load(id: SessionId, folders: Folders | undefined): Promise<SessionInfo | undefined> {
    const store = await this.#deps.store();
    const info = await store.load(id);
    if (info !== undefined || folders === undefined) return info;
    if (!(await store.hasTraces(id))) return undefined;
    const { id: projectId, workspace } = await this.#deps.openProject(folders);
    return store.load(id, { projectId, cwd: workspace.cwd });
  }

  /** Everything that was said in it, oldest first, compacted or not; without what is undone. */
  async *history(id: SessionId): AsyncIterable<Message> {
    const store = await this.#deps.store();
    const live = this.#live.get(id);
    const info = live?.info ?? (await store.load(id));
    // The disk has the newest only a moment later.
    const messages = store.messages(id, live?.transcript.messages);
    yield* withoutReverted(messages, info?.revert);
  }

  async list(query: SessionQuery): Promise<SessionPage<SessionRow>> {
    return (await this.#deps.store()).listRows(query);
  }

  async isStored(id: SessionId): Promise<boolean> {
    return (await (await this.#deps.store()).load(id)) !== undefined;
  }

  /** Gives any session, live or stored, the title that a person chose. False for one that is not there. */
  setTitle(id: SessionId, title: string): Promise<boolean> {
    return this.#opening.run(id, async () => {
      const live = this.#live.get(id);
      if (live === undefined) return this.#amend(id, (info) => ({ ...info, title, titleSource: "person" }));
      await live.setTitle(title, "person");
      return true;
    });
  }

  /** Takes a session out of the list, after closing it, or brings it back. False for one that is not there. */
  setArchived(id: SessionId, isArchived: boolean): Promise<boolean> {
    return this.#opening.run(id, async () => {
      if (isArchived) await this.#closeLive(id);
      else if (this.#live.has(id)) return true;
      return this.#amend(id, ({ time: { archived, ...time }, ...info }) => ({
        ...info,
        time: isArchived ? { ...time, archived: archived ?? Date.now() } : time,
      }));
    });
  }

  /** Reads again what every live session's project works with. */
  async reloadAll(): Promise<void> {
    await Promise.all([...this.#live.values()].map((session) => session.reload()));
  }

  /** Changes what is stored of a session that is not live. */
  async #amend(id: SessionId, change: (info: SessionInfo) => SessionInfo): Promise<boolean> {
    const store = await this.#deps.store();
    const opened = await store.openSession(id);
    if (opened.status === "missing") return false;
    if (opened.status === "busy")
      throw new UserError(`The session ${id} is open in another process. Close it there first.`);
    const { writer } = opened;
    try {
      const info = await store.load(id);
      if (info !== undefined) writer.saveInfo(change(info));
    } finally {
      await writer.close();
    }
    return true;
  }

  close(id: SessionId): Promise<void> {
    return this.#opening.run(id, () => this.#closeLive(id));
  }

  /** Silent for a session that is not there. */
  remove(id: SessionId): Promise<void> {
    return this.#opening.run(id, async () => {
      const live = this.#live.get(id);
      live?.events.deleted(live.info);
      await this.#closeLive(id);
      await (await this.#deps.store()).remove(id);
    });
  }

  async closeAll(): Promise<void> {
    await Promise.all([...this.#live.keys()].map((id) => this.close(id)));
  }

  /** Tells the person in every live session; without one it waits for the next that is opened. */
  async warn(text: string): Promise<void> {
    const { host } = this.#deps;
    if (this.#live.size === 0) this.#warnings = [...this.#warnings, text].slice(-warningLimit);
    for (const sessionId of this.#live.keys()) {
      await host.emit({ sessionId, type: "notice", severity: "warning", text });
    }
  }

  #addWarnings(opened: OpenResult): OpenResult {
    if (opened.status !== "opened") return opened;
    const notices = [opened.notice, ...this.#warnings.splice(0)].filter((text) => text !== undefined);
    return { ...opened, notice: notices.length > 0 ? notices.join("\n") : undefined };
  }

  async #closeLive(id: SessionId): Promise<void> {
    const session = this.#live.get(id);
    this.#live.delete(id);
    await session?.close();
  }
}

/** The list is complete each time: what it leaves out is not a folder of the session any more. */
async function hasFolders({ info }: Session, folders: Folders | undefined): Promise<boolean> {
  if (folders === undefined) return true;
  const { cwd, additionalDirectories = [] } = info;
  return (
    JSON.stringify(folders.additionalDirectories) === JSON.stringify(additionalDirectories) &&
    (folders.cwd === cwd || (await realpath(folders.cwd)) === cwd)
  );
}

/** What was allowed for it was meant for the folder in which it worked. */
function moveToFolder(info: SessionInfo, cwd: string): SessionInfo {
  if (info.cwd === cwd) return info;
  const { approvals: _, ...rest } = info;
  return { ...rest, cwd };
}

/** Who opens a session that was put away wants it back. */
function omitArchived(info: SessionInfo): SessionInfo {
  const { archived: _, ...time } = info.time;
  return { ...info, time };
}
