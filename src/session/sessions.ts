import { realpath } from "node:fs/promises";
import { KeyedSerial } from "../base/async.ts";
import { errorFields } from "../base/error-fields.ts";
import { UserError } from "../base/errors.ts";
import { newSessionId, type SessionId } from "../message/ids.ts";
import type { GivenPrompt, Message, SessionInfo, Worktree } from "../message/message.ts";
import type { SessionPage, SessionQuery, SessionRow } from "../storage/session-list.ts";
import { ChildSessions } from "./child-sessions.ts";
import type { ForkPoint } from "./fork.ts";
import type { Folders, Project } from "../conversation/project.ts";
import { type OpenResult, SessionOpener, type SessionOpenerDeps } from "./session-opener.ts";
import type { Session } from "./session.ts";
import type { MergeTargetsDeps } from "./merge-targets.ts";
import { makeProjectFolder, requireInCheckout, toProjectFolders } from "./session-worktree.ts";
import { omitReverted } from "../conversation/visible-messages.ts";

/** Settings of a new session. */
export interface NewSession {
  readonly givenPrompt?: GivenPrompt | undefined;
  /** Whether the session gets a new git worktree; the default comes from the configuration. */
  readonly hasWorktree?: boolean | undefined;
}

export interface SessionsDeps extends Omit<
  SessionOpenerDeps,
  "live" | "infoOf" | "onOpened" | "mergeTargets" | "openChild" | "settleChild"
> {
  version: string;
}

export type ForkResult =
  | { status: "forked"; session: Session }
  | { status: "missing" }
  | { status: "no such message" };

/** Maximum number of warnings stored for the next session; older ones are only in the log. */
const warningLimit = 20;

/** All sessions: live ones in this process and stored ones. */
export class Sessions {
  readonly #deps: SessionsDeps;
  readonly #live = new Map<SessionId, Session>();
  /** Sessions that the client closed and whose kept jobs run. */
  readonly #detached = new Set<SessionId>();
  readonly #children: ChildSessions;
  readonly #opening = new KeyedSerial();
  readonly #opener: SessionOpener;
  /** Warnings that no client has received yet. */
  #warnings: string[] = [];

  constructor(deps: SessionsDeps) {
    this.#deps = deps;
    const { store, version } = deps;
    this.#opener = new SessionOpener({
      store,
      host: deps.host,
      log: deps.log,
      openProject: deps.openProject,
      servers: deps.servers,
      openApprovals: deps.openApprovals,
      onTurnEnd: deps.onTurnEnd,
      memory: deps.memory,
      recentChanges: deps.recentChanges,
      worktrees: deps.worktrees,
      live: (id) => this.live(id),
      infoOf: (id) => (this.live(id) ?? this.#children.live(id))?.info,
      onOpened: (session) => this.#live.set(session.id, session),
      mergeTargets: async (info) =>
        (await import("./merge-targets.ts")).listMergeTargets(await this.#mergeTargetsDeps(), info),
      openChild: (child, parent) => this.#children.open(child, parent),
      settleChild: (child, parent) => this.#children.settle(child, parent),
    });
    this.#children = new ChildSessions({
      store,
      version,
      opener: this.#opener,
      worktrees: deps.worktrees,
      mergeTargetsDeps: () => this.#mergeTargetsDeps(),
    });
  }

  /** Returns the session if it is live in this process. */
  live(id: SessionId): Session | undefined {
    return this.#live.get(id);
  }

  /** The sessions that are live in this process, without children. */
  get allLive(): readonly Session[] {
    return [...this.#live.values()];
  }

  /** Returns a child session while its task runs. */
  child(id: SessionId): Session | undefined {
    return this.#children.live(id);
  }

  /** Creates a session and stores it, so that it can be listed, loaded and removed immediately. */
  async create(folders: Folders, { givenPrompt, hasWorktree }: NewSession = {}): Promise<Session> {
    const project = await this.#deps.openProject(folders);
    const info = { ...this.#newInfo(project, folders), ...(givenPrompt && { givenPrompt }) };
    if (!(hasWorktree ?? project.config.worktree ?? false)) return this.#opener.create(info, project);
    const worktrees = await this.#deps.worktrees();
    const worktree = await worktrees.create(info.cwd, info.id);
    try {
      await makeProjectFolder(worktree, info.cwd);
      const isolated = { ...info, worktree };
      return await this.#opener.create(isolated, await this.#deps.openProject(toProjectFolders(isolated)));
    } catch (error) {
      await worktrees.remove(worktree);
      throw error;
    }
  }

  /** Creates a session with a copy of another one's messages, all of them or up to a message. */
  async fork(id: SessionId, folders: Folders, point?: ForkPoint): Promise<ForkResult> {
    const [{ collectMessages, copyMessages, inheritInfo }, { copyPrompts }] = await Promise.all([
      import("./fork.ts"),
      import("../turn/frozen-prompts.ts"),
    ]);
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
      await copyPrompts(store.files, id, info.id);
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
      ...(project.config.approval && { approval: project.config.approval }),
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

  /** Opens a stored session or returns the live one; an idle live session is reopened if its folders change. */
  open(id: SessionId, folders?: Folders): Promise<OpenResult> {
    return this.#opening.run(id, async () => {
      const live = this.#live.get(id);
      this.#detached.delete(id);
      if (live !== undefined && (live.isBusy || (await hasFolders(live, folders))))
        return { status: "opened", session: live, notice: undefined };
      if (live !== undefined && live.jobs.kept.length > 0)
        return { status: "opened", session: live, notice: createFoldersNotice(live) };
      await this.#closeLive(id);
      const info = await this.#load(id, folders);
      if (info === undefined) return { status: "missing" };
      const additionalDirectories = [...(folders?.additionalDirectories ?? info.additionalDirectories ?? [])];
      const cwd = await realpath(folders?.cwd ?? info.cwd);
      const worktree = info.worktree && (await this.#reopenWorktree(info.worktree, id, cwd));
      const project = await this.#deps.openProject(
        toProjectFolders({ cwd, additionalDirectories, worktree }),
      );
      const amend = (stored: SessionInfo) => ({
        ...moveToFolder(omitArchived(stored), cwd),
        additionalDirectories,
        ...(worktree && { worktree }),
      });
      return this.#addWarnings(await this.#opener.open(id, project, { amend }));
    });
  }

  async #reopenWorktree(known: Worktree, id: SessionId, cwd: string): Promise<Worktree> {
    await requireInCheckout(known, cwd);
    const worktree = await (await this.#deps.worktrees()).reopen(known, id);
    await makeProjectFolder(worktree, cwd);
    return worktree;
  }

  /** Loads a session's info. If a damaged file lost its folder, the client's folder is used. */
  async #load(id: SessionId, folders: Folders | undefined): Promise<SessionInfo | undefined> {
    const store = await this.#deps.store();
    const info = await store.load(id);
    if (info !== undefined || folders === undefined) return info;
    if (!(await store.hasTraces(id))) return undefined;
    const { id: projectId, workspace } = await this.#deps.openProject(folders);
    return store.load(id, { projectId, cwd: workspace.cwd });
  }

  /** Yields all messages, oldest first, including compacted ones and without undone ones. */
  async *history(id: SessionId): AsyncIterable<Message> {
    const store = await this.#deps.store();
    const live = this.#live.get(id);
    const info = live?.info ?? (await store.load(id));
    // The newest messages may not be on disk yet.
    const messages = store.messages(id, live?.transcript.messages);
    yield* omitReverted(messages, info?.revert);
  }

  async list(query: SessionQuery): Promise<SessionPage<SessionRow>> {
    return (await this.#deps.store()).listRows(query);
  }

  async isStored(id: SessionId): Promise<boolean> {
    return (await (await this.#deps.store()).load(id)) !== undefined;
  }

  /** Sets the user's title of a live or stored session. Returns false if not found. */
  setTitle(id: SessionId, title: string): Promise<boolean> {
    return this.#opening.run(id, async () => {
      const live = this.#live.get(id);
      if (live === undefined) return this.#amend(id, (info) => ({ ...info, title, titleSource: "person" }));
      await live.setTitle(title, "person");
      return true;
    });
  }

  /** Closes and archives a session, or restores it. Returns false if not found. */
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

  /** Reloads the projects of all live sessions. */
  async reloadAll(): Promise<void> {
    await Promise.all([...this.#live.values()].map((session) => session.reload()));
  }

  /** Changes the stored info of a session that is not live. Returns false if not found. */
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

  /** Closes a session. One with kept jobs ends everything else, and closes when they have ended. */
  close(id: SessionId): Promise<void> {
    return this.#opening.run(id, async () => {
      const session = this.#live.get(id);
      if (session === undefined || session.jobs.kept.length === 0) return this.#closeLive(id);
      await session.detach();
      this.#detached.add(id);
      void this.#closeAfterJobs(session);
    });
  }

  async #closeAfterJobs(session: Session): Promise<void> {
    const { id, jobs } = session;
    try {
      await Promise.all(jobs.kept.map(({ ended }) => ended));
      await this.#opening.run(id, async () => {
        // It may have been opened meanwhile, and closed again with other jobs.
        if (this.#detached.has(id) && jobs.kept.length === 0) await this.#closeLive(id);
      });
    } catch (error) {
      this.#deps.log.error("session with kept jobs not closed", errorFields(error));
    }
  }

  /** Closes and deletes a session; does nothing if not found. */
  remove(id: SessionId): Promise<void> {
    return this.#opening.run(id, async () => {
      const live = this.#live.get(id);
      live?.events.deleted(live.info);
      await this.#closeLive(id);
      await (await this.#deps.store()).remove(id);
    });
  }

  async closeAll(): Promise<void> {
    const ids = [...this.#live.keys()];
    await Promise.all(ids.map((id) => this.#opening.run(id, () => this.#closeLive(id))));
  }

  /** Resolves when running notifications have ended, or take too long. */
  async notified(): Promise<void> {
    await Promise.all(this.allLive.map((session) => session.notified()));
  }

  /** Shows a warning in every live session; without one it is stored for the next session. */
  warn(text: string): void {
    const open = this.allLive.filter(({ id }) => !this.#detached.has(id));
    if (open.length === 0) this.#warnings = [...this.#warnings, text].slice(-warningLimit);
    for (const { id, events } of open)
      events.emit({ sessionId: id, type: "notice", severity: "warning", text });
  }

  #addWarnings(opened: OpenResult): OpenResult {
    if (opened.status !== "opened") return opened;
    const notices = [opened.notice, ...this.#warnings.splice(0)].filter((text) => text !== undefined);
    return { ...opened, notice: notices.length > 0 ? notices.join("\n") : undefined };
  }

  async #closeLive(id: SessionId): Promise<void> {
    const session = this.#live.get(id);
    this.#live.delete(id);
    this.#detached.delete(id);
    await session?.close();
    if (session !== undefined) await this.#removeMerged(session.info);
  }

  /** Removes the worktrees of a closed session and its tasks that have nothing to merge. Must not throw. */
  async #removeMerged(info: SessionInfo): Promise<void> {
    try {
      const deps = await this.#mergeTargetsDeps();
      // Most sessions never had one.
      if (info.worktree === undefined && !deps.worktrees.hasAny()) return;
      const { removeMerged } = await import("./merge-targets.ts");
      await removeMerged(deps, info);
    } catch (error) {
      this.#deps.log.warn("worktree not removed", { sessionId: info.id, ...errorFields(error) });
    }
  }

  async #mergeTargetsDeps(): Promise<MergeTargetsDeps> {
    const { store, worktrees } = this.#deps;
    return {
      store: await store(),
      worktrees: await worktrees(),
      isLive: (id) => this.#children.live(id) !== undefined,
    };
  }
}

function createFoldersNotice({ jobs, info }: Session): string {
  const [job] = jobs.kept;
  return `The session keeps its folder ${info.cwd} and its additional folders because its job ${job?.id} goes on. To use the editor's folders, stop the job and open the session again.`;
}

/** Returns whether the session has exactly these folders. */
async function hasFolders({ info }: Session, folders: Folders | undefined): Promise<boolean> {
  if (folders === undefined) return true;
  const { cwd, additionalDirectories = [] } = info;
  return (
    JSON.stringify(folders.additionalDirectories) === JSON.stringify(additionalDirectories) &&
    (folders.cwd === cwd || (await realpath(folders.cwd)) === cwd)
  );
}

/** Moves the session to another folder and drops its approvals, which were given for the old one. */
function moveToFolder(info: SessionInfo, cwd: string): SessionInfo {
  if (info.cwd === cwd) return info;
  const { approvals: _, ...rest } = info;
  return { ...rest, cwd };
}

/** Opening an archived session restores it. */
function omitArchived(info: SessionInfo): SessionInfo {
  const { archived: _, ...time } = info.time;
  return { ...info, time };
}
