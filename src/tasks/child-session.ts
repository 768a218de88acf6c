import type { Agent } from "../agent/agent.ts";
import { messageOf, UserError } from "../base/errors.ts";
import { isBelow } from "../base/files/paths.ts";
import type { Activity } from "../message/activity.ts";
import type { Child, Emit } from "../message/event.ts";
import type { SessionId } from "../message/ids.ts";
import type { Inquire } from "../message/inquiry.ts";
import type { Message, SessionInfo, Worktree } from "../message/message.ts";
import type { ModelRef } from "../message/model-ref.ts";
import { type FileChange, isFinished, type Part, type ToolPart } from "../message/part.ts";
import { getToolPermission } from "../permission/parse-rules.ts";
import type { Decider, GateCall } from "../permission/gate.ts";
import type { Rule, Ruleset } from "../permission/rule.ts";
import {
  type PartlyTrackedCommand,
  type RunContext,
  type RunningTask,
  type TaskCall,
  type TaskOutcome,
  type TaskRequest,
  type TaskWorktree,
  ToolFailure,
} from "../tool/tool.ts";
import { startsTurn } from "../message/starts-turn.ts";
import {
  changesOf,
  findPartlyTracked,
  interruptedEditsOf,
  partlyTrackedCommandsOf,
} from "../conversation/checkpoints.ts";
import { type CallActivity, describeCall, orderActivity, taskActivityLimit } from "../evidence/activity.ts";
import { netChanges } from "./merged-changes.ts";
import type { InterruptedTask } from "../undo/interrupted-turn.ts";
import { IdleWatch } from "./idle-watch.ts";
import type { SessionStore } from "../storage/session-store.ts";
import type { Project } from "../conversation/project.ts";
import type { PromptInput } from "../conversation/prompt-input.ts";
import type { Transcript } from "../conversation/transcript.ts";
import type { TurnResult } from "../conversation/turn-result.ts";

/** Default maximum number of model calls per task. */
const stepLimit = 100;
/** Time without activity after which a task is stopped. Waiting for the user does not count. */
const idleLimitMs = 10 * 60_000;
/** Default nesting depth of tasks. */
const depthLimit = 1;
/** Number of newest children that are searched for an interrupted call. */
const childrenLimit = 200;
/** Maximum number of tool calls in a task's result. */
const summaryLimit = 50;
/** Maximum number of commands in a task's result that cannot be undone; the newest stay. */
const partlyTrackedLimit = 50;
/** Maximum length of a call's title in the result, in characters. */
const summaryTitleLimit = 120;
/** Maximum length of each shown text of the agent, in characters. */
const shownTextLimit = 400;

/** The parent session of a task. */
export interface Parent {
  readonly id: SessionId;
  /** 0 for a top-level session. */
  readonly depth: number;
  readonly project: Project;
  readonly gate: Decider;
  readonly emit: Emit;
  readonly inquire: Inquire;
  /** The calling agent and the model it uses. */
  readonly agent: Agent;
  readonly model: ModelRef | undefined;
  /** Model named by the command that queued the task. */
  readonly wishedModel: ModelRef | undefined;
  open(child: ChildSession): Promise<TaskSession>;
  /** Returns where the changes of a closed child are, if it worked in a worktree. */
  settle(child: SessionInfo): Promise<TaskWorktree | undefined>;
}

/** The opened child session. */
export interface TaskSession {
  readonly id: SessionId;
  readonly info: SessionInfo;
  readonly transcript: Pick<Transcript, "messages">;
  prompt(input: PromptInput): Promise<TurnResult>;
  cancel(): void;
  close(): Promise<void>;
}

/** Settings of a child session. */
export interface ChildSession {
  /** Id of an earlier session to continue. */
  readonly id: string | undefined;
  /** Whether it works in a git worktree. An earlier session stays where it worked. */
  readonly hasWorktree: boolean;
  readonly callId: string;
  readonly title: string;
  readonly agent: string;
  readonly model: ModelRef | undefined;
  readonly depth: number;
  readonly project: Project;
  readonly gate: Decider;
  readonly inquire: Inquire;
  /** Returns the event receiver once the child's id is known. */
  emitFor(child: Child): Emit;
}

/** The parts of a call that its task uses. The signal cancels the task. */
export type TaskRunContext = Pick<RunContext, "callId" | "signal" | "output">;

/**
 * Starts a task in a child session. The child is bound by the rules of all its parents, asks in the top-level session,
 * and is cancelled by the signal. Throws {@link ToolFailure} if it cannot start.
 */
export async function startTask(
  parent: Parent,
  task: TaskRequest,
  run: TaskRunContext,
): Promise<RunningTask> {
  const agent = parent.project.agents.get(task.agent);
  if (agent === undefined) throw new ToolFailure(`Agent "${task.agent}" not found. Use another agent.`);
  const depth = parent.depth + 1;
  const project = createChildProject(agent, depth, parent);
  const work = new TaskRun(run);
  const idle = new IdleWatch(idleLimit(project), () => work.cutShort(idleReason(project)));
  const gate = new ChildGate(parent, agent.name, idle);
  const session = await openChild(parent, {
    id: task.taskId,
    hasWorktree: task.hasWorktree ?? false,
    callId: run.callId,
    title: `${task.description} (@${agent.name})`,
    agent: agent.name,
    model: parent.wishedModel ?? (agent.model === undefined ? modelFor(agent, parent.model) : undefined),
    depth,
    project,
    gate,
    inquire: (inquiry, signal) => idle.pauseDuring(() => parent.inquire(inquiry, signal)),
    emitFor: (child) => (event) => {
      idle.touch();
      parent.emit({ sessionId: parent.id, type: "child", callId: run.callId, child, event });
      if (event.type === "part") work.onPart(event.part);
      if (event.type === "job-ended") work.onJobEnded(event.part);
    },
  });
  const end = async () => {
    const outcome = await work.runIn(session, task, idle);
    const worktree = await parent.settle(session.info);
    if (worktree === undefined) return outcome;
    // `/merge` records what changes in the session's folder; nothing was checked there.
    const changes = outcome.changes.filter(({ path }) => !isInWorktree(path, worktree));
    const activity = outcome.activity.filter((one) =>
      one.type === "change" ? !isInWorktree(one.path, worktree) : one.type !== "command",
    );
    return { ...outcome, changes, activity, worktree };
  };
  return { taskId: session.id, ended: end() };
}

async function openChild(parent: Parent, child: ChildSession): Promise<TaskSession> {
  try {
    return await parent.open(child);
  } catch (error) {
    if (error instanceof UserError) throw new ToolFailure(messageOf(error), { cause: error });
    throw error;
  }
}

/** Jobs end with the session that started them. */
function stopJobs(activity: Activity): Activity[] {
  if (activity.type === "task") return [];
  return [
    activity.type === "command" && activity.end === "running" ? { ...activity, end: "stopped" } : activity,
  ];
}

/** A running task: collects its changes and calls, and reports progress. */
class TaskRun {
  readonly #run: TaskRunContext;
  /** Changes by the ids of their calls' parts. */
  readonly #changes = new Map<string, readonly FileChange[]>();
  readonly #shown = new Set<string>();
  #cut: { session?: TaskSession; reason?: string } = {};
  readonly #summary: TaskCall[] = [];
  readonly #notUndone: PartlyTrackedCommand[] = [];
  /** The newest calls, by the ids of their parts. */
  readonly #activity = new Map<string, CallActivity>();
  #calls = 0;
  #refusal: string | undefined;

  constructor(run: TaskRunContext) {
    this.#run = run;
  }

  cutShort(reason: string): void {
    this.#cut.reason = reason;
    this.#cut.session?.cancel();
  }

  async runIn(session: TaskSession, { prompt, trace }: TaskRequest, idle: IdleWatch): Promise<TaskOutcome> {
    const { signal } = this.#run;
    const cancel = () => session.cancel();
    this.#cut.session = session;
    signal.addEventListener("abort", cancel, { once: true });
    const costBefore = session.info.cost;
    try {
      idle.start();
      const answer = session.prompt({
        blocks: [{ type: "text", text: prompt, audience: "both", by: "model" }],
        ...(trace && { trace }),
      });
      if (signal.aborted) session.cancel();
      const result = await answer;
      return this.#outcome(session, result, session.info.cost - costBefore);
    } finally {
      idle.stop();
      signal.removeEventListener("abort", cancel);
      await session.close();
    }
  }

  /** Records the child's parts for the result and shows each as a line of output. */
  onPart(part: Part): void {
    if (part.type === "text" && part.time?.end !== undefined && part.synthetic !== true)
      this.#show(part.id, part.text);
    if (part.type === "retry") this.#show(part.id, part.error);
    if (part.type !== "tool") return;
    if (part.state.status === "running") this.#show(part.id, `→ ${part.title ?? part.tool}`);
    if (isFinished(part.state)) this.#onCallEnded(part);
  }

  /** Records what the job of an earlier call did. */
  onJobEnded(part: ToolPart): void {
    this.#note(part);
  }

  #note(part: ToolPart): void {
    const { id, state } = part;
    if ("changes" in state && state.changes !== undefined) this.#changes.set(id, state.changes);
    this.#activity.set(id, describeCall(part));
    const [oldest] = this.#activity.keys();
    if (oldest !== undefined && this.#activity.size > taskActivityLimit) this.#activity.delete(oldest);
  }

  #onCallEnded(part: ToolPart): void {
    const { state } = part;
    this.#calls++;
    this.#notUndone.push(...findPartlyTracked(part));
    this.#notUndone.splice(0, this.#notUndone.length - partlyTrackedLimit);
    this.#note(part);
    const title = part.title ?? part.tool;
    const status = state.status === "completed" ? "completed" : "error";
    this.#summary.push({ tool: part.tool, title: title.slice(0, summaryTitleLimit), status });
    if (this.#summary.length > summaryLimit) this.#summary.shift();
    if (state.status !== "error") return;
    if (state.reason === "rejected" && part.decision?.feedback === undefined)
      this.#refusal ??= `The user rejected "${title}", which ended the task.`;
    this.#show(`${part.id} failed`, `✗ ${title}: ${state.reason}`);
  }

  #show(key: string, text: string): void {
    if (this.#shown.has(key) || text.trim() === "") return;
    this.#shown.add(key);
    const line = text.length <= shownTextLimit ? text : `${text.slice(0, shownTextLimit)}…`;
    this.#run.output(`${line}\n`);
  }

  #outcome(session: TaskSession, result: TurnResult, cost: number): TaskOutcome {
    const report = {
      taskId: session.id,
      text: lastText(session.transcript.messages),
      changes: netChanges([...this.#changes.values()].flat()),
      calls: this.#calls,
      summary: this.#summary,
      notUndone: this.#notUndone,
      activity: orderActivity([...this.#activity.values()])
        .flatMap(stopJobs)
        .slice(-taskActivityLimit),
      model: lastModel(session.transcript.messages),
      cost,
    };
    if (this.#cut.reason !== undefined) return { ...report, end: "cutShort", reason: this.#cut.reason };
    switch (result.end) {
      case "finished":
        return this.#refusal === undefined
          ? { ...report, end: "finished" }
          : { ...report, end: "stopped", reason: this.#refusal };
      case "cancelled":
        return { ...report, end: "cancelled", reason: "The task was cancelled." };
      case "stepLimit":
        return {
          ...report,
          end: "cutShort",
          reason: "The task was cut short: it reached its limit of steps.",
        };
      case "outputLimit":
        return {
          ...report,
          end: "cutShort",
          reason: "The task was cut short: its model's answer was too long.",
        };
      case "refused":
        return { ...report, end: "failed", reason: "The task's model refused to answer." };
      case "failed":
        return { ...report, end: "failed", reason: `The task failed: ${result.error.message}` };
    }
  }
}

/** Forwards calls to the parent's gate, with the child agent in the title. */
class ChildGate implements Decider {
  readonly #parent: Parent;
  readonly #agent: string;
  readonly #idle: IdleWatch;

  constructor(parent: Parent, agent: string, idle: IdleWatch) {
    this.#parent = parent;
    this.#agent = agent;
    this.#idle = idle;
  }

  decide(call: GateCall, rules: Ruleset, signal: AbortSignal) {
    const childCall = { ...call, title: `@${this.#agent}: ${call.title}`, askedUnder: this.#parent.id };
    return this.#idle.pauseDuring(() => this.#parent.gate.decide(childCall, rules, signal));
  }

  isAllowed(call: Pick<GateCall, "permissions" | "limits" | "within">, rules: Ruleset): boolean {
    return this.#parent.gate.isAllowed(call, rules);
  }

  reconsider(): void {
    this.#parent.gate.reconsider();
  }

  /** Does nothing: the child's questions are withdrawn by their signals. */
  close(): void {}
}

/** Returns the parent's project with the child's agent restricted to the permissions of its parents. */
function createChildProject(agent: Agent, depth: number, { project, agent: parent }: Parent): Project {
  const deepest = project.config.subagent_depth ?? depthLimit;
  const own = agent.named;
  const denied = [
    "plan_enter",
    "plan_exit",
    ...["todowrite", "todoread"].filter((name) => !own.has(name)),
    ...(own.has("task") && depth < deepest ? [] : ["task"]),
    ...(project.config.experimental?.primary_tools ?? []).map(getToolPermission),
  ];
  const child: Agent = {
    ...agent,
    steps: agent.steps ?? stepLimit,
    rules: [
      ...agent.rules,
      ...denied.map((permission): Rule => ({ permission, pattern: "*", action: "deny" })),
    ],
    ...inheritLimits(agent, parent),
  };
  return {
    ...project,
    agents: new Map([...project.agents, [agent.name, child]]),
    consent: undefined,
    hasChanged: async () => false,
  };
}

/** Returns additional rules for a child's calls: the limits of both agents and all rules of the parent. */
export function inheritLimits(
  agent: Pick<Agent, "limits">,
  parent: Pick<Agent, "rules" | "limits" | "within">,
): Required<Pick<Agent, "limits" | "within">> {
  return {
    limits: [...(agent.limits ?? []), ...(parent.limits ?? [])],
    within: [...(parent.within ?? []), omitOwnTools(parent.rules)],
  };
}

/** Removes rules for tools that apply to the parent only: questions, to-do lists, plan mode. */
function omitOwnTools(rules: Ruleset): Ruleset {
  const own = new Set(["question", "todowrite", "todoread", "plan_enter", "plan_exit"]);
  return rules.filter(({ permission }) => !own.has(permission));
}

function modelFor({ variant }: Agent, model: ModelRef | undefined): ModelRef | undefined {
  return model && (variant === undefined ? model : { ...model, variant });
}

function idleLimit({ config }: Project): number {
  const seconds = config.subagent_idle_seconds;
  return seconds === undefined ? idleLimitMs : seconds * 1000;
}

function idleReason(project: Project): string {
  return `The task was cut short: nothing happened in it for ${idleLimit(project) / 1000} seconds.`;
}

function lastModel(messages: readonly Message[]): ModelRef | undefined {
  const last = messages.findLast(({ info }) => info.role === "assistant")?.info;
  return last?.role === "assistant" ? last.model : undefined;
}

function lastText(messages: readonly Message[]): string {
  const last = messages.findLast(({ info }) => info.role === "assistant");
  const texts = (last?.parts ?? []).map((part) => (part.type === "text" && !part.ignored ? part.text : ""));
  return texts.join("\n\n").trim();
}

/** Finds the child session of an interrupted task call, with what it changed for that call. */
export async function findTask(
  store: Pick<SessionStore, "list" | "messagesFromNewest">,
  parentId: SessionId,
  callId: string,
): Promise<InterruptedTask | undefined> {
  const { sessions } = await store.list({ parentId, limit: childrenLimit });
  const child = sessions.find(({ parentCallId }) => parentCallId === callId);
  if (child === undefined) return undefined;
  const { worktree } = child;
  const messages: Message[] = [];
  for await (const message of store.messagesFromNewest(child.id)) {
    messages.push(message);
    if (startsTurn(message)) break;
  }
  messages.reverse();
  return {
    id: child.id,
    agent: child.agent,
    changes: netChanges(changesOf(messages)).filter(({ path }) => !isInWorktree(path, worktree)),
    notUndone: partlyTrackedCommandsOf(messages),
    interruptedEdits: interruptedEditsOf(messages).filter((path) => !isInWorktree(path, worktree)),
    worktree,
  };
}

const isInWorktree = (path: string, worktree: Pick<Worktree, "root"> | undefined): boolean =>
  worktree !== undefined && isBelow(path, worktree.root);
