import type { TraceContext } from "../message/trace-context.ts";
import type { z } from "zod";
import type { Activity } from "../message/activity.ts";
import type { SessionId } from "../message/ids.ts";
import type { Inquire } from "../message/inquiry.ts";
import type { ModelRef, Todo } from "../message/message.ts";
import type { Attachment, FileChange, Location, ToolKind } from "../message/part.ts";
import type { Decision, PermissionRequest, QuestionAnswers, Ruleset } from "../permission/rule.ts";
import type { AuthorChanges } from "../workspace/recent/recent-changes.ts";
import type { Workspace } from "../workspace/workspace.ts";
import type { Jobs, StartedJob } from "./job/jobs.ts";
import type { OutputLimits } from "./output-limit.ts";
import type { SeenFiles } from "./seen-files.ts";

/**
 * Definition of a tool. The runner validates the input, asks for permission, truncates the output and ends each call,
 * so that no tool can forget these.
 */
export interface Tool<Input = unknown> {
  readonly name: string;
  /** Text for the model: when to use the tool, when not, and its limits. */
  readonly description: string;
  readonly input: z.ZodType<Input>;
  /** JSON Schema sent to the model. Those of built-in tools are in schema/tools.json. */
  readonly schema?: Readonly<Record<string, unknown>>;
  /** Names of the same tool in other programs, which models use by habit. */
  readonly otherNames?: readonly string[];
  /** Names of parameters in other programs, by parameter at any depth. Case, `_` and `-` do not count. */
  readonly aliases?: Readonly<Record<string, readonly string[]>>;
  /** Source of a tool that is not built in, as shown to the user: "the MCP server notes". */
  readonly source?: string;
  /** Name of the MCP server that offers the tool. */
  readonly server?: string;
  /** The effect is unknown: asks for permission unless a rule of the user decides. */
  readonly asks?: boolean;
  /** Selects the icon in the editor. */
  readonly kind: ToolKind;
  /** Shared calls of one step run in parallel; an exclusive call runs alone. */
  readonly concurrency: "shared" | "exclusive";
  /**
   * Returns the permissions for paths outside the workspace, without revealing what is there; undefined if the call
   * names no such path. Called when `prepare` fails, so that the failure is reported only after approval.
   */
  access?(input: Input, context: ToolContext): Promise<Access | undefined>;
  /** Describes what the call would do. Changes nothing. Throws {@link ToolFailure} for errors that the model can fix. */
  prepare(input: Input, context: ToolContext): Promise<PreparedCall>;
}

/** Services of the session that a tool may use. */
export interface ToolContext {
  readonly sessionId: SessionId;
  readonly agent: string;
  readonly workspace: Workspace;
  /** For the checks before a change. */
  readonly seen: SeenFiles;
  /** Recent changes by other sessions. */
  readonly recent: AuthorChanges;
  /** Real paths of the instruction files (such as AGENTS.md) that the model has read in this session. */
  readonly instructed: Set<string>;
  readonly todos: TodoList;
  readonly inquire: Inquire;
  readonly agents: AgentSwitch;
  readonly tasks: Tasks;
  readonly jobs: Jobs;
  /** The trace context of the prompt. */
  readonly trace?: TraceContext | undefined;
  /** Aborts when the turn is cancelled. */
  readonly signal: AbortSignal;
}

export interface TodoList {
  read(): readonly Todo[];
  /** Replaces the whole list, stores it and shows it as the editor's plan. */
  write(todos: Todo[]): Promise<void>;
}

/** The agents of this session, and how to switch between them. */
export interface AgentSwitch {
  /** Names of the agents that the user may choose. */
  readonly names: readonly string[];
  /** Whether the agent's rules ask before edits, if the session's approval setting allows none. */
  asksForEdits(name: string): boolean;
  /** Switches the turn, from its next step, and the session to this agent. Lets its edits ask, or accepts them. */
  switchTo(name: string, edits?: "ask" | "accept"): Promise<void>;
}

/** Starts work in child sessions. */
export interface Tasks {
  /** Names of the agents that the user may call with `@`. */
  readonly agents: readonly string[];
  /** Whether the user's newest message names this agent for a task. */
  isRequested(agent: string): boolean;
  /** Resolves when the task runs. Throws {@link ToolFailure} if it cannot start. */
  start(task: TaskRequest, run: Pick<RunContext, "callId" | "signal" | "output">): Promise<RunningTask>;
}

export interface RunningTask {
  /** Id of the child session, to continue the task. */
  readonly taskId: SessionId;
  readonly ended: Promise<TaskOutcome>;
}

export interface TaskRequest {
  /** A few words. */
  readonly description: string;
  /** The agent's only input. */
  readonly prompt: string;
  readonly agent: string;
  /** The slash command that started the task. */
  readonly command?: string | undefined;
  /** An earlier task of this session to continue. */
  readonly taskId?: string | undefined;
  /** Works in a git worktree. */
  readonly hasWorktree?: boolean | undefined;
  readonly trace?: TraceContext | undefined;
}

/** The git worktree in which a task worked. */
export interface TaskWorktree {
  readonly branch: string;
  /** Absolute path of its folder. */
  readonly root: string;
  /** Files that differ from the checkout as it was at the beginning; none if the worktree was removed. */
  readonly files: readonly string[];
  /** Number of untracked files and folders of the checkout that it did not get. */
  readonly untracked?: number | undefined;
}

export interface TaskOutcome {
  /** Id of the child session, to continue the task. */
  readonly taskId: SessionId;
  /** `cutShort`: step limit or inactivity; `stopped`: the user refused a call. */
  readonly end: "finished" | "cutShort" | "stopped" | "cancelled" | "failed";
  /** Why it did not finish. */
  readonly reason?: string;
  /** The agent's last text. */
  readonly text: string;
  readonly changes: readonly FileChange[];
  /** Number of tool calls. */
  readonly calls: number;
  /** The newest tool calls, oldest first. */
  readonly summary: readonly TaskCall[];
  /** Its commands whose changes cannot all be undone. */
  readonly notUndone: readonly PartlyTrackedCommand[];
  /** The agent's changes and runs, in their order. */
  readonly activity: readonly Activity[];
  /** Set if it worked in a worktree: it changed nothing in the session's folder. */
  readonly worktree?: TaskWorktree | undefined;
  /** The model of the last answer. */
  readonly model: ModelRef | undefined;
  /** US dollars. */
  readonly cost: number;
}

/** A command whose changes cannot all be undone. */
export interface PartlyTrackedCommand {
  /** The command line. */
  readonly command: string;
  readonly reasons: readonly string[];
}

/** One tool call of a task, for the parent's card and for plugins. */
export interface TaskCall {
  readonly tool: string;
  readonly title: string;
  readonly status: "completed" | "error";
}

/** The facts of a call that are known without reading its paths. */
export type Access = Pick<PreparedCall, "title" | "locations" | "permissions">;

export interface PreparedCall {
  /** One line for the editor: a command's own text, a path relative to the workspace. */
  readonly title: string;
  readonly locations: readonly Location[];
  /** Shown to the user with the permission request. */
  readonly preview?: Preview;
  readonly permissions: readonly PermissionRequest[];
  /** The answers to the question, if they are not the usual ones. */
  readonly answers?: QuestionAnswers;
  run(context: RunContext): Promise<ToolResult>;
}

/** Whole texts before and after, for each changed file. */
export interface Preview {
  readonly diffs?: readonly { path: string; oldText: string | null; newText: string; isDeleted?: boolean }[];
  readonly text?: string;
  /** Shown with its format. */
  readonly markdown?: string;
}

export interface RunContext {
  /** Unique in the session. */
  readonly callId: string;
  readonly signal: AbortSignal;
  /** Whether the rules allow this without asking, for needs found only while the call runs. */
  isAllowed(permissions: readonly PermissionRequest[]): boolean;
  /** A command must run in a sandbox, because the session's approval setting is *Sandboxed*. */
  readonly isSandboxed?: boolean;
  /** The user chose the second of the call's own answers. */
  readonly isOther?: boolean;
  /** The lists of rules that apply to the call; each must allow it. */
  rules?(): readonly Ruleset[];
  /** Asks for a further permission while the call runs; the text is shown with the question. */
  request?(permissions: readonly PermissionRequest[], text: string): Promise<Decision>;
  /** Shows live output. */
  output(delta: string): void;
  /** Resolves when the client can receive more. Awaited by tools with much output, so that it does not fill memory. */
  waitUntilReady(): Promise<void>;
  /** Limits of the output for the model, for tools that cannot hold all of it. */
  readonly limits: OutputLimits;
}

/** Expected outcomes are values; a throw from `run` is a bug, {@link ToolFailure} or an abort. */
export type ToolResult =
  | {
      status: "completed";
      /** For the model; the runner truncates it. */
      output: string;
      /** Notes that follow the output and are never cut. Must be short. */
      notes?: string;
      title?: string;
      locations?: readonly Location[];
      attachments?: readonly Attachment[];
      changes?: readonly FileChange[];
      metadata?: Record<string, unknown>;
      /** Set if the work continues in the background. */
      job?: StartedJob;
    }
  | {
      status: "failed";
      /** For the model; the runner truncates it. */
      error: string;
      notes?: string;
      /** The user stopped the call, which ends the turn like a rejected permission or a cancel. */
      stop?: "rejected" | "cancelled";
      changes?: readonly FileChange[];
      metadata?: Record<string, unknown>;
    };

/** Joins output and notes as the model reads them if nothing is cut. */
export function appendNotes(output: string, notes: string | undefined): string {
  return notes === undefined || notes === "" ? output : `${output}\n\n${notes}`;
}

/** Adds notes for the model to a result. */
export function addNotes(result: ToolResult, notes: readonly string[]): ToolResult {
  if (notes.length === 0) return result;
  return { ...result, notes: [...(result.notes ? [result.notes] : []), ...notes].join("\n\n") };
}

/** An error that the model can fix: a wrong path, a stale file, an ambiguous match. The message says how. */
export class ToolFailure extends Error {
  override readonly name = "ToolFailure";
}

/**
 * Prepares a call. If that fails and the call names a path outside the workspace, the call fails only when it runs,
 * after approval: before that, the model must not learn what is there.
 */
export async function prepareCall(tool: Tool, input: unknown, context: ToolContext): Promise<PreparedCall> {
  try {
    return await tool.prepare(input, context);
  } catch (error) {
    const access = error instanceof ToolFailure ? await tool.access?.(input, context) : undefined;
    if (access === undefined) throw error;
    const run = () => Promise.reject(error);
    return { ...access, run };
  }
}

/** Checks that schema and `prepare` have the same input type, and erases that type for lists of tools. */
export function defineTool<Input>(tool: Tool<Input>): Tool {
  return tool;
}
