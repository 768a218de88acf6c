import { UserError } from "../base/errors.ts";
import { isSessionId, newSessionId, type SessionId } from "../message/ids.ts";
import type { SessionInfo, Worktree } from "../message/message.ts";
import type { Project } from "../conversation/project.ts";
import type { SessionStore } from "../storage/session-store.ts";
import type { ChildSession } from "../tasks/child-session.ts";
import type { TaskWorktree } from "../tool/tool.ts";
import type { Worktrees } from "../workspace/worktrees/worktrees.ts";
import type { MergeTargetsDeps } from "./merge-targets.ts";
import type { SessionOpener } from "./session-opener.ts";
import { makeProjectFolder, toProjectFolders } from "./session-worktree.ts";
import type { Session } from "./session.ts";

export interface ChildSessionsDeps {
  store(): Promise<SessionStore>;
  version: string;
  opener: Pick<SessionOpener, "open">;
  worktrees(): Promise<Worktrees>;
  mergeTargetsDeps(): Promise<MergeTargetsDeps>;
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
    const earlier = child.id === undefined ? undefined : await this.#loadEarlier(child.id, parent);
    const id = earlier?.id ?? newSessionId();
    const worktree = await this.#openWorktree(child, id, earlier);
    try {
      return await this.#open(child, parent, { id, earlier, worktree });
    } catch (error) {
      if (worktree !== undefined && earlier === undefined)
        await (await this.#deps.worktrees()).remove(worktree);
      throw error;
    }
  }

  /** Returns where the changes of a closed child are. Removes its worktree if it has none. */
  async settle({ worktree }: SessionInfo, parent: Session): Promise<TaskWorktree | undefined> {
    if (worktree === undefined) return undefined;
    const { settleTask } = await import("./merge-targets.ts");
    await parent.stored();
    const files = await settleTask(await this.#deps.mergeTargetsDeps(), parent.info, worktree);
    const { branch, root, untracked } = worktree;
    return { branch, root, files, untracked };
  }

  async #open(child: ChildSession, parent: Session, opening: Opening): Promise<Session> {
    const { agent, model, title, callId: parentCallId } = child;
    const { id, earlier, worktree } = opening;
    const now = Date.now();
    const settings = { agent, ...(model && { model }), ...(worktree && { worktree }), parentCallId };
    const info: SessionInfo = {
      id,
      projectId: child.project.id,
      parentId: parent.id,
      cwd: child.project.workspace.cwd,
      title,
      titleSource: "fallback",
      cost: 0,
      time: { created: now, updated: now },
      version: this.#deps.version,
      ...earlier,
      ...settings,
    };
    if (earlier === undefined) await (await this.#deps.store()).create(info);
    const project =
      worktree === undefined ? child.project : await moveToWorktree(child.project, worktree, parent);
    const amend = (stored: SessionInfo) => ({ ...stored, ...settings });
    const opened = await this.#deps.opener.open(id, project, {
      amend,
      parent: { child: { ...child, project }, session: parent },
    });
    if (opened.status === "opened") return this.#register(opened.session);
    const why = opened.status === "busy" ? "it is still running" : "it no longer exists";
    throw new UserError(`The task ${id} cannot continue: ${why}.`);
  }

  /** Returns the worktree of a task, created again if it is gone; undefined if the task works in the session's folder. */
  async #openWorktree(
    { hasWorktree, depth, project }: ChildSession,
    id: SessionId,
    earlier: SessionInfo | undefined,
  ): Promise<Worktree | undefined> {
    if (earlier?.worktree !== undefined) return (await this.#deps.worktrees()).reopen(earlier.worktree, id);
    if (!hasWorktree) return undefined;
    if (earlier !== undefined)
      throw new UserError(
        `The task ${id} works in the session's folder. Call task without task_id to start one in a worktree.`,
      );
    if (depth > 1)
      throw new UserError(
        "A task that another task starts cannot have a worktree, because nobody could merge it. Start it without worktree.",
      );
    return (await this.#deps.worktrees()).create(project.workspace.cwd, id);
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

interface Opening {
  readonly id: SessionId;
  readonly earlier: SessionInfo | undefined;
  readonly worktree: Worktree | undefined;
}

/** Returns the project with tools that work in the worktree, under the same rules and configuration. */
async function moveToWorktree(project: Project, worktree: Worktree, { servers }: Session): Promise<Project> {
  const [cwd = project.workspace.cwd, ...additionalDirectories] = project.workspace.roots;
  await makeProjectFolder(worktree, cwd);
  const moved = await project.openIn(toProjectFolders({ cwd, additionalDirectories, worktree }));
  const { files } = project.workspace;
  return {
    ...project,
    ...moved,
    // With the editor's buffers of the folders outside the worktree.
    workspace: { ...moved.workspace, files },
    tools: async () => {
      const own = await moved.tools();
      return [...own, ...(await servers.tools(own.map(({ name }) => name)))];
    },
  };
}
