import { z } from "zod";
import { type MessageId, messageIdSchema, sessionIdSchema } from "./ids.ts";
import { modelRefSchema } from "./model-ref.ts";
import { partSchema, tokensSchema } from "./part.ts";

export { type ModelRef, modelRefSchema } from "./model-ref.ts";

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
  /** The reasoning effort that the user chose; ignored by models without it. */
  effort: z.string().optional(),
  /** Additional system text for the answers to this message. */
  system: z.string().optional(),
  /** Tools switched off (false) for the answers to this message. */
  tools: z.record(z.string(), z.boolean()).optional(),
  /** True for a message sent into a running turn: it does not start a turn. */
  steering: z.boolean().optional(),
  /** The id under which clients know the message, given before it was stored. */
  injectId: messageIdSchema.optional(),
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

/** Why a request does not begin as an earlier one did, or why the provider's cache does not have its beginning. */
export const prefixLossCauses = [
  "model",
  "agent",
  "system",
  "tools",
  "compaction",
  "cleared",
  "media",
  "thoughts",
  "messages",
  "expired",
] as const;

/** A kind of content that a request omits from messages because the model does not accept it. */
export const omittedKinds = ["images", "pdf", "audio", "thoughts"] as const;
export type OmittedKind = (typeof omittedKinds)[number];

/** Digests of a request, and how much of its beginning earlier requests had. All tokens are estimates. */
const sentRequestSchema = z.object({
  system: z.string(),
  tools: z.string(),
  /** The digest of all messages. */
  messages: z.string(),
  /** Number of messages. */
  count: z.number(),
  /** Kinds of content that were omitted from the messages; absent if none. */
  omits: z.array(z.enum(omittedKinds)).optional(),
  tokens: z.number(),
  /** Tokens at the beginning that an earlier request began with. */
  kept: z.number(),
  /** Tokens that the provider could have had in its cache but reads again. */
  lost: z.number().optional(),
  cause: z.enum(prefixLossCauses).optional(),
  /** US dollars that the lost tokens cost in addition. */
  cost: z.number().optional(),
});
export type SentRequest = z.infer<typeof sentRequestSchema>;

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
  /** The request, compared with earlier ones. */
  sent: sentRequestSchema.optional(),
  /** True for the summary that a compaction wrote. */
  summary: z.boolean().optional(),
});

export const messageInfoSchema = z.discriminatedUnion("role", [userInfoSchema, assistantInfoSchema]);
export const messageSchema = z.object({ info: messageInfoSchema, parts: z.array(partSchema) });

export type UserInfo = z.infer<typeof userInfoSchema>;
export type AssistantInfo = z.infer<typeof assistantInfoSchema>;
export type MessageInfo = z.infer<typeof messageInfoSchema>;
export type Message = z.infer<typeof messageSchema>;

/** Returns the id under which clients know a message. */
export function clientIdOf(info: MessageInfo): MessageId {
  return (info.role === "user" ? info.injectId : undefined) ?? info.id;
}

/** Whether clients know the message, or one of its parts, under this id. */
export function hasClientId({ info, parts }: Message, id: string): boolean {
  return info.id === id || clientIdOf(info) === id || parts.some((part) => part.id === id);
}

export const todoSchema = z.object({
  content: z.string(),
  status: z.enum(["pending", "in_progress", "completed", "cancelled"]),
  priority: z.enum(["high", "medium", "low"]),
});
export type Todo = z.infer<typeof todoSchema>;

/**
 * The undone messages of a session: from the last id of `from` up to `through`. The model and the user do not see
 * them; they stay on disk while a redo is possible.
 * - `from`: the first message of each undo, the newest undo last; each goes further back than the previous one.
 * - `state`: any other state than "undone" was interrupted and is completed when the session is opened.
 */
export const revertSchema = z.object({
  state: z.enum(["undoing", "undone", "redoing", "discarding"]),
  from: z.array(messageIdSchema).min(1),
  through: messageIdSchema,
});
export type Revert = z.infer<typeof revertSchema>;

export function isReverted(id: MessageId, revert: Revert | undefined): boolean {
  const from = revert?.from.at(-1);
  return revert !== undefined && from !== undefined && id >= from && id <= revert.through;
}

/**
 * The calls that run without asking: only those that the rules allow, also file changes in the workspace, or all that are not
 * denied.
 */
export const approvalModes = ["ask", "accept-edits", "sandboxed", "auto"] as const;
export const approvalModeSchema = z.enum(approvalModes);
export type ApprovalMode = z.infer<typeof approvalModeSchema>;

/** A client's instructions for the model: added to the program's own, or replacing the built-in ones. */
export const givenPromptSchema = z.object({ mode: z.enum(["append", "override"]), text: z.string() });
export type GivenPrompt = z.infer<typeof givenPromptSchema>;

/** The git worktree in which a session works instead of the folder that the client named. */
export const worktreeSchema = z.object({
  /** Absolute real path of its folder. */
  root: z.string(),
  branch: z.string(),
  /** Commit from which it started, with the uncommitted changes of tracked files at that time. */
  base: z.string(),
  /** Absolute real path of the checkout from which it was made. */
  main: z.string(),
  /** Number of untracked files and folders of the checkout that it did not get. */
  untracked: z.number().optional(),
});
export type Worktree = z.infer<typeof worktreeSchema>;

export const titleSources = ["fallback", "generated", "person"] as const;

/** A session's stored info without its messages. Times are milliseconds since 1970. */
export const sessionInfoSchema = z.object({
  id: sessionIdSchema,
  projectId: z.string(),
  parentId: sessionIdSchema.optional(),
  /** The parent's call that started a child session. */
  parentCallId: z.string().optional(),
  cwd: z.string(),
  additionalDirectories: z.array(z.string()).optional(),
  /** Where the session's tools work; `cwd` is the folder that the client named. */
  worktree: worktreeSchema.optional(),
  title: z.string().optional(),
  /** Source of the title: a user's title stays; a generated one replaces the fallback. */
  titleSource: z.enum(titleSources).optional(),
  agent: z.string(),
  model: modelRefSchema.optional(),
  /** The reasoning effort that the user chose; ignored by models without it. */
  effort: z.string().optional(),
  /** US dollars, child sessions included. */
  cost: z.number(),
  /** Usage for generating the title, which is not a message. Its cost is included in `cost`. */
  titleCall: z
    .object({ model: modelRefSchema, tokens: tokensSchema, cost: z.number(), time: z.number() })
    .optional(),
  time: z.object({
    created: z.number(),
    updated: z.number(),
    archived: z.number().optional(),
    /** Start of the running compaction. */
    compacting: z.number().optional(),
  }),
  version: z.string(),
  revert: revertSchema.optional(),
  /** Absent means ask. */
  approval: approvalModeSchema.optional(),
  /** The user's approvals for this session in this folder. */
  approvals: z.array(z.object({ permission: z.string().min(1), pattern: z.string().min(1) })).optional(),
  /** Whether a notice gave the price of reading the conversation again. */
  rereadNoticed: z.boolean().optional(),
  /** Whether a full context is compacted automatically; absent means as configured. */
  autoCompact: z.boolean().optional(),
  /** The client's instructions for the model. */
  givenPrompt: givenPromptSchema.optional(),
  /** Total lines added and removed, and files changed. The files are in `session_diff/<id>`. */
  summary: z.object({ additions: z.number(), deletions: z.number(), files: z.number() }).optional(),
});
export type SessionInfo = z.infer<typeof sessionInfoSchema>;
