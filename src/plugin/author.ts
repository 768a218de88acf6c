import type { z } from "zod";

/**
 * A plugin: a function that a module exports. It is called once, before the first turn that it takes part in, and
 * returns its hooks. It runs in a process beside Fairlead, not in it.
 */
export type Plugin = (input: PluginInput, options: PluginOptions) => Hooks | Promise<Hooks>;

/** What stands behind the plugin's name in the configuration, as in `["./audit.ts", { "level": 2 }]`; else empty. */
export type PluginOptions = Readonly<Record<string, unknown>>;

export interface PluginInput {
  /** Absolute paths: the session's folder, and the repository's root (the same where there is none). */
  readonly directory: string;
  readonly worktree: string;
  readonly project: { readonly id: string; readonly worktree: string };
  readonly client: PluginClient;
}

/** What is left here of OpenCode's client; any other member throws an error that says so. */
export interface PluginClient {
  readonly app: {
    /** Writes a line to Fairlead's log. */
    log(options: { body: { service?: string; level?: string; message: string } }): Promise<void>;
  };
}

/**
 * Hooks get what they may only read as `input` and what they may change as `output`: they change its fields, what
 * they return is not looked at. Each has 5 seconds. Plugins are called one after the other, each with what the one
 * before has left.
 */
export interface Hooks {
  /** Told of what happens, in order. Nobody waits for it, and nothing can be changed. */
  event?(input: { event: PluginEvent }): unknown;
  /** A person's message before it is stored. `parts` may be joined by texts, texts in it may be changed. */
  "chat.message"?(
    input: { sessionID: string; messageID: string; agent: string; model?: PluginModelRef },
    output: { message: UserMessage; parts: Part[] },
  ): unknown;
  /** Before each call of a model for a turn. Undefined leaves the choice to the provider. */
  "chat.params"?(
    input: {
      sessionID: string;
      agent: string;
      model: PluginModelRef & { name: string };
      message: UserMessage;
    },
    output: ModelParams,
  ): unknown;
  /** Before each call of a model for a turn: the system prompt in blocks, which are sent in their order. */
  "experimental.chat.system.transform"?(
    input: { sessionID: string; model: PluginModelRef },
    output: { system: string[] },
  ): unknown;
  /**
   * Before a call is looked at and permitted; `output.args` are the model's arguments. An Error that is thrown refuses
   * the call, and the model reads its message.
   */
  "tool.execute.before"?(
    input: { tool: string; sessionID: string; callID: string },
    output: { args: Record<string, unknown> },
  ): unknown;
  /** After a call that completed, before its output is cut and the model reads it. */
  "tool.execute.after"?(
    input: { tool: string; sessionID: string; callID: string; args: Record<string, unknown> },
    output: { title: string; output: string; metadata: Record<string, unknown> },
  ): unknown;
  /**
   * Before a person is asked. `status` is what the rules say, `allow` or `ask`. `deny` and `ask` always count. `allow`
   * answers for the person only where the approval setting "auto-approve" would: never for what must be confirmed.
   */
  "permission.ask"?(input: PermissionQuestion, output: { status: "allow" | "ask" | "deny" }): unknown;
  /** Tools by name. */
  tool?: Record<string, ToolDefinition>;
}

export interface ModelParams {
  temperature?: number;
  topP?: number;
  maxOutputTokens?: number;
  /** Added to the request's body. */
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
  /** Further system text for the answer to this message. */
  system?: string;
  /** Tools that are not offered for it: false by their name. */
  tools?: Record<string, boolean>;
}

/** A piece of a message. Those that are not texts can be left out, not changed. */
export interface Part {
  id?: string;
  type: string;
  text?: string;
  [key: string]: unknown;
}

export interface PermissionQuestion {
  readonly id: string;
  /** The first permission's name, as in rules: bash, edit, … */
  readonly type: string;
  readonly pattern: string[];
  readonly sessionID: string;
  readonly callID: string;
  readonly title: string;
  readonly metadata: { readonly tool?: string; readonly input?: unknown };
}

/** What `permission.asked` says. `pattern` and `type` are the names that the hook `permission.ask` uses. */
export interface PermissionRequest extends PermissionQuestion {
  readonly permission: string;
  readonly patterns: string[];
  /** Patterns that "always" would allow from now on. */
  readonly always: string[];
  readonly tool: { readonly callID: string };
}

export type SessionStatus =
  | { readonly type: "idle" }
  | { readonly type: "busy" }
  /** `next` is when the next attempt begins, in milliseconds since 1970. */
  | { readonly type: "retry"; readonly attempt: number; readonly message: string; readonly next: number };

export interface PluginSession {
  readonly id: string;
  readonly projectID: string;
  /** The session that a task works for. */
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
 * - `session.updated` {sessionID, info, and what changed: title, agent, model or usage}
 * - `session.status` {sessionID, status}
 * - `session.diff` {sessionID, diff: [{file, status, additions, deletions}]} after a turn that changed files
 * - `session.error` {sessionID, error} and `session.idle` {sessionID} at the end of a turn
 * - `message.updated` {info}, `message.part.updated` {part}: whole parts, no single pieces of text
 * - `permission.asked` {@link PermissionRequest}; `permission.replied` {sessionID, requestID, callID, reply}
 * - `todo.updated` {sessionID, todos}, `file.edited` {sessionID, file}, `mcp.tools.changed` {server}
 */
export interface PluginEvent {
  readonly type: string;
  readonly properties: Record<string, unknown>;
}

export interface ToolDefinition {
  /** What the model reads: when to use it, and what it returns. */
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
  /** The title of the call's card, and facts kept with the call. */
  metadata(more: { title?: string; metadata?: Record<string, unknown> }): void;
}

/** Keeps the types of the arguments between `args` and `execute`. */
export interface DefineTool {
  <Args extends Record<string, z.ZodType>>(definition: {
    description: string;
    args: Args;
    execute(args: z.infer<z.ZodObject<Args>>, context: ToolContext): ToolOutput | Promise<ToolOutput>;
  }): ToolDefinition;
  schema: typeof z;
}

export declare const tool: DefineTool;
