import { z } from "zod";
import { type MessageId, messageIdSchema, sessionIdSchema } from "./ids.ts";
import { modelRefSchema } from "./model-ref.ts";
import { partSchema, tokensSchema } from "./part.ts";

export { isModelRef, type ModelRef, modelRefSchema } from "./model-ref.ts";

/** Why a model call or a turn failed; codes are compared, messages are shown. */
export const agentErrorSchema = z.object({
  code: z.enum([
    "auth",
    "rate-limit",
    "overloaded",
    "context-length",
    "bad-request",
    "not-found",
    "network",
    "timeout",
    "server",
    "invalid-response",
    "content-filter",
    "output-length",
    "no-model",
    "storage",
    "cancelled",
    "internal",
  ]),
  message: z.string(),
  /** The HTTP status, where the failure had one. */
  status: z.number().optional(),
  /** The wait that the provider asked for, in milliseconds. */
  retryAfterMs: z.number().optional(),
  /** The context window that the provider named, in tokens. */
  window: z.number().int().positive().optional(),
  retryable: z.boolean(),
});
export type AgentError = z.infer<typeof agentErrorSchema>;

const userInfoSchema = z.object({
  id: messageIdSchema,
  sessionId: sessionIdSchema,
  role: z.literal("user"),
  time: z.object({ created: z.number() }),
  agent: z.string(),
  model: modelRefSchema.optional(),
  /** The reasoning effort that the person chose; counts where the model has it. */
  effort: z.string().optional(),
  /** Further system text for the answers to this message. */
  system: z.string().optional(),
  /** Tools switched off (false) for the answers to this message. */
  tools: z.record(z.string(), z.boolean()).optional(),
  /** True for what the person said into a running turn: it begins none of its own. */
  steering: z.boolean().optional(),
});

/** Why a model call ended. */
export const finishReasons = [
  "stop",
  "tool-calls",
  "length",
  "content-filter",
  "refusal",
  "error",
  "cancelled",
  "unknown",
] as const;
export const finishReasonSchema = z.enum(finishReasons);
export type FinishReason = z.infer<typeof finishReasonSchema>;

const assistantInfoSchema = z.object({
  id: messageIdSchema,
  sessionId: sessionIdSchema,
  role: z.literal("assistant"),
  /** The user message that this one answers. */
  parentId: messageIdSchema,
  time: z.object({ created: z.number(), completed: z.number().optional() }),
  agent: z.string(),
  /** The session's folder and the repository's root (the same outside git), both absolute. */
  path: z.object({ cwd: z.string(), root: z.string() }).optional(),
  model: modelRefSchema,
  /** US dollars. */
  cost: z.number(),
  tokens: tokensSchema,
  finish: finishReasonSchema.optional(),
  error: agentErrorSchema.optional(),
  /** True for the summary that a compaction wrote. */
  summary: z.boolean().optional(),
});

export const messageInfoSchema = z.discriminatedUnion("role", [userInfoSchema, assistantInfoSchema]);
export const messageSchema = z.object({ info: messageInfoSchema, parts: z.array(partSchema) });

export type UserInfo = z.infer<typeof userInfoSchema>;
export type AssistantInfo = z.infer<typeof assistantInfoSchema>;
export type MessageInfo = z.infer<typeof messageInfoSchema>;
export type Message = z.infer<typeof messageSchema>;

export const todoSchema = z.object({
  content: z.string(),
  status: z.enum(["pending", "in_progress", "completed", "cancelled"]),
  priority: z.enum(["high", "medium", "low"]),
});
export type Todo = z.infer<typeof todoSchema>;

/**
 * What of a session is taken back. Its messages from the last of `from` up to `through` do not count: the model does
 * not see them and nobody is shown them; they stay on disk for as long as they can be brought again. `from` has the
 * first message of each undo, the newest undo last; each goes further back than the one before. Any other state than
 * "undone" was cut off in the middle and is completed when the session is opened.
 */
export const revertSchema = z.object({
  state: z.enum(["undoing", "undone", "redoing", "discarding"]),
  from: z.array(messageIdSchema).min(1),
  through: messageIdSchema,
});
export type Revert = z.infer<typeof revertSchema>;

/** Whether a message is taken back. */
export function isReverted(id: MessageId, revert: Revert | undefined): boolean {
  const from = revert?.from.at(-1);
  return revert !== undefined && from !== undefined && id >= from && id <= revert.through;
}

/** How much goes without asking: nothing more than the rules allow, changes of files in the workspace, or all but denials. */
export const approvalModes = ["ask", "accept-edits", "auto"] as const;
export const approvalModeSchema = z.enum(approvalModes);
export type ApprovalMode = z.infer<typeof approvalModeSchema>;

/** What a client says of the model's instructions: beside the program's own, or in the place of its built-in ones. */
export const givenPromptSchema = z.object({ mode: z.enum(["append", "override"]), text: z.string() });
export type GivenPrompt = z.infer<typeof givenPromptSchema>;

export const titleSources = ["fallback", "generated", "person"] as const;

/** What is stored of a session beside its messages. Times are milliseconds since 1970. */
export const sessionInfoSchema = z.object({
  id: sessionIdSchema,
  projectId: z.string(),
  parentId: sessionIdSchema.optional(),
  /** The call of the parent that began a child session. */
  parentCallId: z.string().optional(),
  cwd: z.string(),
  additionalDirectories: z.array(z.string()).optional(),
  title: z.string().optional(),
  /** Who gave the title: a person's stays, a generated one replaces the fallback. */
  titleSource: z.enum(titleSources).optional(),
  agent: z.string(),
  model: modelRefSchema.optional(),
  /** The reasoning effort that the person chose; counts where the model has it. */
  effort: z.string().optional(),
  /** US dollars, child sessions included. */
  cost: z.number(),
  /** What a model used to write the title, which is no message; its cost is in the whole cost. */
  titleCall: z
    .object({ model: modelRefSchema, tokens: tokensSchema, cost: z.number(), time: z.number() })
    .optional(),
  time: z.object({
    created: z.number(),
    updated: z.number(),
    archived: z.number().optional(),
    /** When the compaction that runs now began. */
    compacting: z.number().optional(),
  }),
  version: z.string(),
  revert: revertSchema.optional(),
  /** Absent means ask. */
  approval: approvalModeSchema.optional(),
  /** What the person allowed for as long as it works in this folder. */
  approvals: z.array(z.object({ permission: z.string().min(1), pattern: z.string().min(1) })).optional(),
  /** Whether a full context is summed up by itself; absent means as configured. */
  autoCompact: z.boolean().optional(),
  /** The client's instructions for the model. */
  givenPrompt: givenPromptSchema.optional(),
  /** Lines added and taken away, and files changed, in all; the files themselves stand in `session_diff/<id>`. */
  summary: z.object({ additions: z.number(), deletions: z.number(), files: z.number() }).optional(),
});
export type SessionInfo = z.infer<typeof sessionInfoSchema>;
