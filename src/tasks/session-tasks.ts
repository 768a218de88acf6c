import type { Emit } from "../message/event.ts";
import type { SessionId } from "../message/ids.ts";
import type { SessionInfo } from "../message/message.ts";
import type { Inquire } from "../message/inquiry.ts";
import type { Part } from "../message/part.ts";
import type { Decider } from "../permission/gate.ts";
import type { RunningTask, TaskRequest, Tasks, TaskWorktree } from "../tool/tool.ts";
import type { ChildSession, TaskRunContext, TaskSession } from "./child-session.ts";
import type { SessionSettings } from "../session-state/session-settings.ts";
import type { Project } from "../conversation/project.ts";
import type { Transcript } from "../conversation/transcript.ts";

export interface SessionTasksDeps {
  sessionId: SessionId;
  /** Tasks of the parent session. */
  parent: SessionTasks | undefined;
  project(): Project;
  settings: SessionSettings;
  transcript: Pick<Transcript, "messages">;
  gate: Decider;
  emit: Emit;
  inquire: Inquire;
  /** Opens a child of the session. Throws {@link UserError} on failure. */
  open(child: ChildSession): Promise<OpenedChild>;
  /** Returns where the changes of a closed child are, if it worked in a worktree. */
  settle(child: SessionInfo): Promise<TaskWorktree | undefined>;
}

export interface OpenedChild extends TaskSession {
  /** Resolves when the session is closed. */
  readonly closed: Promise<void>;
}

/** Starts tasks in child sessions. */
export class SessionTasks implements Tasks {
  readonly #deps: SessionTasksDeps;
  readonly #children = new Set<OpenedChild>();
  /** 0 for a top-level session. */
  readonly #depth: number;

  constructor(deps: SessionTasksDeps) {
    this.#deps = deps;
    this.#depth = deps.parent === undefined ? 0 : deps.parent.#depth + 1;
  }

  get agents(): string[] {
    const agents = [...this.#deps.project().agents.values()];
    return agents.filter(({ mode }) => mode !== "primary").map(({ name }) => name);
  }

  isRequested(agent: string): boolean {
    return this.#requests().some((part) => requestedBy(part) === agent);
  }

  async start(task: TaskRequest, run: TaskRunContext): Promise<RunningTask> {
    const { sessionId, settings, transcript, gate, emit, inquire } = this.#deps;
    const caller = transcript.messages.findLast(({ info }) => info.role === "assistant")?.info;
    const queued = this.#requests().find((part) => part.type === "subtask" && part.command === task.command);
    const parent = {
      id: sessionId,
      depth: this.#depth,
      project: this.#deps.project(),
      gate,
      emit,
      inquire,
      agent: settings.agentNamed(caller?.agent),
      model: caller?.model,
      wishedModel: queued?.type === "subtask" ? queued.model : undefined,
      open: (child: ChildSession) => this.#open(child),
      settle: (child: SessionInfo) => this.#deps.settle(child),
    };
    const { startTask } = await import("./child-session.ts");
    return startTask(parent, task, run);
  }

  /** Resolves when all children are closed. */
  async waitForChildren(): Promise<void> {
    await Promise.all([...this.#children].map((child) => child.closed));
  }

  /** Returns the parts of the user's newest message. */
  #requests(): readonly Part[] {
    return this.#deps.transcript.messages.findLast(({ info }) => info.role === "user")?.parts ?? [];
  }

  async #open(child: ChildSession): Promise<OpenedChild> {
    const session = await this.#deps.open(child);
    this.#children.add(session);
    void session.closed.then(() => this.#children.delete(session));
    return session;
  }
}

function requestedBy(part: Part): string | undefined {
  if (part.type === "agent") return part.name;
  return part.type === "subtask" ? part.agent : undefined;
}
