import type { z } from "zod";
import type { SessionId } from "../message/ids.ts";
import type { Inquire } from "../message/inquiry.ts";
import type { ModelRef, Todo } from "../message/message.ts";
import type { Attachment, FileChange, Location, ToolKind } from "../message/part.ts";
import type { PermissionRequest } from "../permission/rule.ts";
import type { Workspace } from "../workspace/workspace.ts";
import type { OutputLimits } from "./output-limit.ts";

/**
 * A tool is defined once. Validation of its input, permission, truncation and the terminal state of each call
 * belong to the runner, so that no tool can forget them.
 */
export interface Tool<Input = unknown> {
  readonly name: string;
  /** What the model reads: when to use it, when not, what its limits are. */
  readonly description: string;
  readonly input: z.ZodType<Input>;
  /** JSON Schema that the model is told. A tool of the program's own has its one in schema/tools.json. */
  readonly schema?: Readonly<Record<string, unknown>>;
  /** Nobody knows what it does: it asks unless a rule of the person's says otherwise. */
  readonly asks?: boolean;
  /** Which picture an editor draws for its calls. */
  readonly kind: ToolKind;
  /** Calls of one step run side by side when shared; an exclusive call runs alone. */
  readonly concurrency: "shared" | "exclusive";
  /**
   * Says what a call needs that names paths outside the workspace, without a word on what is there. Undefined where it
   * names none. Asked when `prepare` fails, so that the failure is told only after a yes.
   */
  access?(input: Input, context: ToolContext): Promise<Access | undefined>;
  /** Says what the call would do. Changes nothing. Throws {@link ToolFailure} for what the model can mend. */
  prepare(input: Input, context: ToolContext): Promise<PreparedCall>;
}

/** What a tool may use of the session that calls it. */
export interface ToolContext {
  readonly sessionId: SessionId;
  readonly agent: string;
  readonly workspace: Workspace;
  /** What this session has read of each file, for the stale check. */
  readonly seen: SeenFiles;
  /** Real paths of the instruction files (AGENTS.md and its like) that the model has read in this session. */
  readonly instructed: Set<string>;
  readonly todos: TodoList;
  readonly inquire: Inquire;
  readonly agents: AgentSwitch;
  readonly tasks: Tasks;
  /** Aborts when the turn is cancelled. */
  readonly signal: AbortSignal;
}

/** Content hashes (SHA-256, hex) of files as this session last read or wrote them, by absolute real path. */
export interface SeenFiles {
  get(path: string): string | undefined;
  set(path: string, hash: string): void;
}

export interface TodoList {
  read(): readonly Todo[];
  /** Replaces the whole list, stores it and shows it as the editor's plan. */
  write(todos: Todo[]): Promise<void>;
}

/** Who may answer in this session, and the way to hand the turn over. */
export interface AgentSwitch {
  /** Names of the agents that a person may choose. */
  readonly names: readonly string[];
  /** The turn goes on under this agent from its next step on, the session stays with it. */
  switchTo(name: string): Promise<void>;
}

/** Work that goes on in child sessions. */
export interface Tasks {
  /** Names of the agents that a person may ask for a task with `@`. */
  readonly agents: readonly string[];
  /** Whether the person's newest message names this agent for a task. */
  isRequested(agent: string): boolean;
  start(task: TaskRequest, run: RunContext): Promise<TaskOutcome>;
}

export interface TaskRequest {
  /** A few words. */
  readonly description: string;
  /** All that the agent is told. */
  readonly prompt: string;
  readonly agent: string;
  /** The command that queued it. */
  readonly command?: string | undefined;
  /** An earlier task of this session that goes on. */
  readonly taskId?: string | undefined;
}

export interface TaskOutcome {
  /** Names the child session; with it the task can go on. */
  readonly taskId: SessionId;
  /** `cutShort` by its limit of steps or because nothing happened for too long, `stopped` by the person's no. */
  readonly end: "finished" | "cutShort" | "stopped" | "cancelled" | "failed";
  /** Why it did not finish. */
  readonly reason?: string;
  /** The last that the agent wrote. */
  readonly text: string;
  readonly changes: readonly FileChange[];
  /** Number of tool calls. */
  readonly calls: number;
  /** The newest tool calls, oldest first. */
  readonly summary: readonly TaskCall[];
  /** The model that answered last. */
  readonly model: ModelRef | undefined;
  /** US dollars. */
  readonly cost: number;
}

/** One tool call of a task, as its parent's card and plugins need it. */
export interface TaskCall {
  readonly tool: string;
  readonly title: string;
  readonly status: "completed" | "error";
}

/** What is known of a call without a look at its paths. */
export type Access = Pick<PreparedCall, "title" | "locations" | "permissions">;

export interface PreparedCall {
  /** One line for the editor: a command's own text, a path relative to the workspace. */
  readonly title: string;
  readonly locations: readonly Location[];
  /** What the person sees beside the question whether it may run. */
  readonly preview?: Preview;
  readonly permissions: readonly PermissionRequest[];
  run(context: RunContext): Promise<ToolResult>;
}

/** Whole texts before and after, for each file that the call would change. */
export interface Preview {
  readonly diffs?: readonly { path: string; oldText: string | null; newText: string }[];
  readonly text?: string;
}

export interface RunContext {
  /** Unique in the session. */
  readonly callId: string;
  readonly signal: AbortSignal;
  /** Whether the rules allow this too, without asking: what only shows itself while the call runs. */
  isAllowed(permissions: readonly PermissionRequest[]): boolean;
  /** Live output; awaited so that a slow editor slows the tool down instead of filling memory. */
  output(delta: string): Promise<void>;
  /** What the model may be shown of the output, for tools that cannot hold the whole of it. */
  readonly limits: OutputLimits;
}

/** Expected outcomes are values; a throw from `run` is a bug, {@link ToolFailure} or an abort. */
export type ToolResult =
  | {
      status: "completed";
      /** For the model; the runner truncates it. */
      output: string;
      /** What is to be known of the output. Stands behind it, whatever is cut of that; the tool keeps it short. */
      notes?: string;
      title?: string;
      locations?: readonly Location[];
      attachments?: readonly Attachment[];
      changes?: readonly FileChange[];
      metadata?: Record<string, unknown>;
    }
  | {
      status: "failed";
      /** For the model; the runner truncates it. */
      error: string;
      notes?: string;
      /** The person stopped it, which ends the turn as a no or a cancel in the place of a permission does. */
      stop?: "rejected" | "cancelled";
      changes?: readonly FileChange[];
      metadata?: Record<string, unknown>;
    };

/** Output and notes as the model is shown them when nothing is cut. */
export function appendNotes(output: string, notes: string | undefined): string {
  return notes === undefined || notes === "" ? output : `${output}\n\n${notes}`;
}

/** Something the model can mend: a wrong path, a stale file, an ambiguous match. The message says how. */
export class ToolFailure extends Error {
  override readonly name = "ToolFailure";
}

/**
 * Prepares a call. One that cannot be prepared and names a path outside the workspace fails when it runs, after it was
 * allowed: before that the model learns nothing of what is there.
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

/** Keeps the input's type between schema and `prepare` while definitions stand side by side in one list. */
export function defineTool<Input>(tool: Tool<Input>): Tool {
  return tool;
}
