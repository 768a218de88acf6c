import type { z } from "zod";

/**
 * A plugin: a function that a module exports. It is called once, before the first turn, and returns its
 * hooks.
 * It runs in a separate process.
 */
export type Plugin = (input: PluginInput, options: PluginOptions) => Hooks | Promise<Hooks>;

/** Options after the plugin's name in the configuration, as in `["./audit.ts", { "level": 2 }]`; else empty. */
export type PluginOptions = Readonly<Record<string, unknown>>;

export interface PluginInput {
  /** Absolute paths: the session's folder, and the repository's root (the same if there is none). */
  readonly directory: string;
  readonly worktree: string;
  readonly project: { readonly id: string; readonly worktree: string };
  readonly client: PluginClient;
}

/** The supported part of OpenCode's client; any other member throws an error that says so. */
export interface PluginClient {
  readonly app: {
    log(options: { body: { service?: string; level?: string; message: string } }): Promise<void>;
  };
}

/**
 * Hooks must not change `input`; they change the fields of `output`, and their return value is ignored.
 * Each has 5 seconds. Plugins are called one after the other, each with the output of the previous one.
 */
export interface Hooks {
  /** Called with events, in order. The turn does not wait for it, and it cannot change anything. */
  event?(input: { event: PluginEvent }): unknown;
  /** Called with a user message before it is stored. Texts may be added to `parts` and changed in it. */
  "chat.message"?(
    input: { sessionID: string; messageID: string; agent: string; model?: PluginModelRef },
    output: { message: UserMessage; parts: Part[] },
  ): unknown;
  /** Called before each model call of a turn. Undefined leaves the choice to the provider. */
  "chat.params"?(
    input: {
      sessionID: string;
      agent: string;
      model: PluginModelRef & { name: string };
      message: UserMessage;
    },
    output: ModelParams,
  ): unknown;
  /** Called before each model call of a turn with the blocks of the system prompt, in order. */
  "experimental.chat.system.transform"?(
    input: { sessionID: string; model: PluginModelRef },
    output: { system: string[] },
  ): unknown;
  /**
   * Called before a tool call is checked and permitted; `output.args` are the model's arguments. Throwing an
   * Error refuses the call, and the model reads its message.
   */
  "tool.execute.before"?(
    input: { tool: string; sessionID: string; callID: string },
    output: { args: Record<string, unknown> },
  ): unknown;
  /** Called after a completed tool call, before its output is truncated for the model. */
  "tool.execute.after"?(
    input: { tool: string; sessionID: string; callID: string; args: Record<string, unknown> },
    output: { title: string; output: string; metadata: Record<string, unknown> },
  ): unknown;
  /**
   * Called before the user is asked. `status` is the verdict of the rules, `allow` or `ask`. `deny` and `ask`
   * always apply. `allow` answers for the user only where the approval setting "auto-approve" would.
   */
  "permission.ask"?(input: PermissionQuestion, output: { status: "allow" | "ask" | "deny" }): unknown;
  tool?: Record<string, ToolDefinition>;
}

export interface ModelParams {
  temperature?: number;
  topP?: number;
  maxOutputTokens?: number;
  /** Added to the request body. */
  options: Record<string, unknown>;
}

export interface PluginModelRef {
  providerID: string;
  modelID: string;
}

export interface UserMessage {
  readonly id: string;
  readonly sessionID: string;
  readonly role: "user";
  readonly agent: string;
  readonly model?: PluginModelRef;
  /** Additional system text for the answer to this message. */
  system?: string;
  /** Tools that are not offered for this message: false by name. */
  tools?: Record<string, boolean>;
}

/** A part of a message. Parts other than texts can be removed but not changed. */
export interface Part {
  id?: string;
  type: string;
  text?: string;
  [key: string]: unknown;
}

export interface PermissionQuestion {
  readonly id: string;
  /** Name of the first permission, as in rules: bash, edit, … */
  readonly type: string;
  readonly pattern: string[];
  readonly sessionID: string;
  readonly callID: string;
  readonly title: string;
  readonly metadata: { readonly tool?: string; readonly input?: unknown };
}

/** Data of `permission.asked`. `pattern` and `type` are named as in the hook `permission.ask`. */
export interface PermissionRequest extends PermissionQuestion {
  readonly permission: string;
  readonly patterns: string[];
  /** Patterns that "always" would allow. */
  readonly always: string[];
  readonly tool: { readonly callID: string };
}

export type SessionStatus =
  | { readonly type: "idle" }
  | { readonly type: "busy" }
  /** `next` is the start of the next attempt, in milliseconds since 1970. */
  | { readonly type: "retry"; readonly attempt: number; readonly message: string; readonly next: number };

export interface PluginSession {
  readonly id: string;
  readonly projectID: string;
  /** Parent session of a task's session. */
  readonly parentID?: string;
  readonly directory: string;
  readonly title: string;
  readonly agent: string;
  readonly model?: PluginModelRef;
  /** US dollars. */
  readonly cost: number;
  /** Milliseconds since 1970. */
  readonly time: { readonly created: number; readonly updated: number; readonly archived?: number };
  readonly version: string;
  /** Lines added and removed, and files changed. */
  readonly summary?: { readonly additions: number; readonly deletions: number; readonly files: number };
}

/**
 * - `session.created` and `session.deleted` {sessionID, info}; `created` comes with the first message.
 * - `session.updated` {sessionID, info, and the change: title, agent, model or usage}
 * - `session.status` {sessionID, status}
 * - `session.diff` {sessionID, diff: [{file, status, additions, deletions}]} after a turn that changed files
 * - `session.error` {sessionID, error} and `session.idle` {sessionID} at the end of a turn
 * - `message.updated` {info}, `message.part.updated` {part}: complete parts, no text deltas
 * - `permission.asked` {@link PermissionRequest}; `permission.replied` {sessionID, requestID, callID, reply}
 * - `todo.updated` {sessionID, todos}, `file.edited` {sessionID, file}, `mcp.tools.changed` {server}
 */
export interface PluginEvent {
  readonly type: string;
  readonly properties: Record<string, unknown>;
}

export interface ToolDefinition {
  /** Sent to the model: when to use the tool, and what it returns. */
  description: string;
  /** The arguments by name, each a schema of zod 4 such as `tool.schema.string()`. */
  args: Record<string, z.ZodType>;
  execute: (args: never, context: ToolContext) => ToolOutput | Promise<ToolOutput>;
}

export type ToolOutput = string | { output: string; title?: string; metadata?: Record<string, unknown> };

export interface ToolContext {
  readonly sessionID: string;
  readonly callID: string;
  readonly agent: string;
  readonly directory: string;
  readonly worktree: string;
  /** Aborts when the turn is cancelled and after 10 minutes. */
  readonly abort: AbortSignal;
  /** Sets the title of the call's card, and metadata stored with the call. */
  metadata(more: { title?: string; metadata?: Record<string, unknown> }): void;
}

/** Infers the argument types of `execute` from `args`. */
export interface DefineTool {
  <Args extends Record<string, z.ZodType>>(definition: {
    description: string;
    args: Args;
    execute(args: z.infer<z.ZodObject<Args>>, context: ToolContext): ToolOutput | Promise<ToolOutput>;
  }): ToolDefinition;
  schema: typeof z;
}

export declare const tool: DefineTool;
