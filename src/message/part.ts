import { z } from "zod";
import { messageIdSchema, partIdSchema } from "./ids.ts";
import { modelRefSchema } from "./model-ref.ts";

/** Which picture an editor draws for a call; the words are ACP's. */
export const toolKinds = [
  "read",
  "edit",
  "delete",
  "move",
  "search",
  "execute",
  "think",
  "fetch",
  "switch_mode",
  "other",
] as const;
export const toolKindSchema = z.enum(toolKinds);
export type ToolKind = z.infer<typeof toolKindSchema>;

/** A place in a file. `path` is absolute, `line` counts from 1. */
export const locationSchema = z.object({ path: z.string(), line: z.number().int().positive().optional() });
export type Location = z.infer<typeof locationSchema>;

export const fileOperations = ["add", "update", "delete", "move"] as const;

/**
 * What a call did to one file. `before` and `after` name contents in the snapshot store (SHA-256, hex);
 * null is "no such file", undefined is "not kept" (too large or not text), which cannot be shown or undone.
 */
export const fileChangeSchema = z.object({
  path: z.string(),
  operation: z.enum(fileOperations),
  fromPath: z.string().optional(),
  before: z.string().nullish(),
  after: z.string().nullish(),
  additions: z.number().int().nonnegative(),
  deletions: z.number().int().nonnegative(),
  /** Permission bits of a file that was deleted or moved, where they are not a new file's: undo makes it with them. */
  mode: z.number().int().nonnegative().max(0o777).optional(),
});
export type FileChange = z.infer<typeof fileChangeSchema>;

/** Media that a tool returned or a person attached: base64 in a `data:` URL, or a `file:` URL. */
export const attachmentSchema = z.object({
  mime: z.string(),
  url: z.string(),
  filename: z.string().optional(),
});
export type Attachment = z.infer<typeof attachmentSchema>;

/** Start and end in milliseconds since 1970. */
const spanSchema = z.object({ start: z.number(), end: z.number().optional() });

const textPartSchema = z.object({
  id: partIdSchema,
  type: z.literal("text"),
  text: z.string(),
  /** Written by the program, not by the person or the model: the model sees it, the editor does not. */
  synthetic: z.boolean().optional(),
  /** For the person's eyes only: the model does not see it. */
  ignored: z.boolean().optional(),
  time: spanSchema.optional(),
});

const reasoningPartSchema = z.object({
  id: partIdSchema,
  type: z.literal("reasoning"),
  text: z.string(),
  metadata: z.record(z.string(), z.unknown()).optional(),
  time: spanSchema.optional(),
});

const filePartSchema = z.object({
  id: partIdSchema,
  type: z.literal("file"),
  mime: z.string(),
  url: z.string(),
  filename: z.string().optional(),
});

export const decisionOutcomes = ["allowed", "denied", "rejected", "unasked", "cancelled"] as const;
export const deciders = [
  "rules",
  "approval",
  "mode",
  "plugin",
  "person",
  "failure",
  "signal",
  "close",
] as const;

/** Who decided whether a call may run, on what, and by which rule; `permission` and `subject` name its decisive part. */
export const callDecisionSchema = z.object({
  outcome: z.enum(decisionOutcomes),
  by: z.enum(deciders),
  permission: z.string(),
  subject: z.string(),
  rule: z.object({ permission: z.string(), pattern: z.string(), action: z.string() }).optional(),
  /** Milliseconds that the call waited for a person. */
  waitedMs: z.number().optional(),
});
export type CallDecision = z.infer<typeof callDecisionSchema>;

/** Absent while the model still writes the arguments, and for good when it was cut off there. */
const inputSchema = z.unknown().optional();

const pendingStateSchema = z.object({ status: z.literal("pending"), input: inputSchema });
const runningStateSchema = z.object({
  status: z.literal("running"),
  input: inputSchema,
  time: spanSchema,
});
const completedStateSchema = z.object({
  status: z.literal("completed"),
  input: inputSchema,
  /** What the model reads, already truncated. */
  output: z.string(),
  attachments: z.array(attachmentSchema).optional(),
  changes: z.array(fileChangeSchema).optional(),
  /** Facts for the editor and for tools that continue (exit code, child session); small. */
  metadata: z.record(z.string(), z.unknown()).optional(),
  time: spanSchema,
  /** When pruning took the output out of the model's view. */
  compactedAt: z.number().optional(),
  /** What the model reads in place of an output that does not fit into its context. */
  shownOutput: z.string().optional(),
});
const errorStateSchema = z.object({
  status: z.literal("error"),
  input: inputSchema,
  /** What the model reads: what went wrong and what to do about it. */
  error: z.string(),
  /** Why it did not complete, for callers that compare. */
  reason: z.enum(["failed", "invalid", "denied", "rejected", "cancelled", "interrupted"]),
  changes: z.array(fileChangeSchema).optional(),
  metadata: z.record(z.string(), z.unknown()).optional(),
  time: spanSchema.optional(),
});

export const toolStateSchema = z.discriminatedUnion("status", [
  pendingStateSchema,
  runningStateSchema,
  completedStateSchema,
  errorStateSchema,
]);
export type ToolState = z.infer<typeof toolStateSchema>;
type CompletedState = z.infer<typeof completedStateSchema>;

const toolPartSchema = z.object({
  id: partIdSchema,
  type: z.literal("tool"),
  /** Unique in the session, made by us; the provider's own id stands in `providerCallId`. */
  callId: z.string(),
  providerCallId: z.string().optional(),
  /** The provider's seal on the thoughts before the call, which it wants back with it. */
  signature: z.string().optional(),
  tool: z.string(),
  title: z.string().optional(),
  kind: toolKindSchema.optional(),
  locations: z.array(locationSchema).optional(),
  decision: callDecisionSchema.optional(),
  state: toolStateSchema,
});

export const tokensSchema = z.object({
  input: z.number(),
  output: z.number(),
  reasoning: z.number(),
  cache: z.object({ read: z.number(), write: z.number() }),
});
/** Tokens of one model call. `input` excludes what came from or went to the cache; `output` excludes reasoning. */
export type Tokens = z.infer<typeof tokensSchema>;

/** A provider's own record of what a model thought, to be sent back as it came. */
export const reasoningDetailSchema = z.record(z.string(), z.json());
export type ReasoningDetail = z.infer<typeof reasoningDetailSchema>;

const stepStartPartSchema = z.object({ id: partIdSchema, type: z.literal("step-start") });
const stepFinishPartSchema = z.object({
  id: partIdSchema,
  type: z.literal("step-finish"),
  reason: z.string(),
  tokens: tokensSchema,
  /** US dollars. */
  cost: z.number(),
  /** Of a step with calls: the provider wants them back with the calls. */
  reasoningDetails: z.array(reasoningDetailSchema).optional(),
});
const snapshotPartSchema = z.object({ id: partIdSchema, type: z.literal("snapshot"), snapshot: z.string() });
/** The files that one step changed. */
const patchPartSchema = z.object({
  id: partIdSchema,
  type: z.literal("patch"),
  changes: z.array(fileChangeSchema),
});
/** What the program gives back to the model after a compaction, whatever the summary says. */
const carriedSchema = z.object({
  /** Texts of the user's earlier messages, oldest first. */
  requests: z.array(z.string()).optional(),
  /** One line each. */
  todos: z.array(z.string()).optional(),
  changed: z.array(z.string()).optional(),
  read: z.array(z.string()).optional(),
  /** The path of the newest plan file. */
  plan: z.string().optional(),
  /** The last failed command; `end` says how it ended, `output` is the end of what it printed. */
  failed: z.object({ command: z.string(), end: z.string(), output: z.string() }).optional(),
  skills: z.array(z.object({ name: z.string(), text: z.string() })).optional(),
});
export type Carried = z.infer<typeof carriedSchema>;

const compactionPartSchema = z.object({
  id: partIdSchema,
  type: z.literal("compaction"),
  auto: z.boolean(),
  instruction: z.string().optional(),
  /** The first of the recent messages that stay verbatim beside the summary. */
  keepFrom: messageIdSchema.optional(),
  /** The person's unanswered message, which stays verbatim however old it is. */
  question: messageIdSchema.optional(),
  carried: carriedSchema.optional(),
  /** Tokens of a request right after it, estimated. */
  left: z.number().optional(),
});
const subtaskPartSchema = z.object({
  id: partIdSchema,
  type: z.literal("subtask"),
  prompt: z.string(),
  description: z.string(),
  agent: z.string(),
  model: modelRefSchema.optional(),
  command: z.string().optional(),
});
const agentPartSchema = z.object({ id: partIdSchema, type: z.literal("agent"), name: z.string() });
const retryPartSchema = z.object({
  id: partIdSchema,
  type: z.literal("retry"),
  attempt: z.number().int(),
  attempts: z.number().int(),
  error: z.string(),
  delayMs: z.number(),
  /** Milliseconds since 1970. */
  time: z.number(),
});

export const partSchema = z.discriminatedUnion("type", [
  textPartSchema,
  reasoningPartSchema,
  filePartSchema,
  toolPartSchema,
  stepStartPartSchema,
  stepFinishPartSchema,
  snapshotPartSchema,
  patchPartSchema,
  compactionPartSchema,
  subtaskPartSchema,
  agentPartSchema,
  retryPartSchema,
]);
export type Part = z.infer<typeof partSchema>;
export type TextPart = z.infer<typeof textPartSchema>;
export type ReasoningPart = z.infer<typeof reasoningPartSchema>;
export type FilePart = z.infer<typeof filePartSchema>;
export type SubtaskPart = z.infer<typeof subtaskPartSchema>;
export type ToolPart = z.infer<typeof toolPartSchema>;

/** A completed call's output as the model reads it while it is not cleared. */
export const visibleOutput = ({ output, shownOutput }: CompletedState): string => shownOutput ?? output;

export const isFinished = (state: ToolState): boolean =>
  state.status === "completed" || state.status === "error";

/** What the model sees in place of an output that was taken out of its view. */
export const clearedOutput = "[Old tool result content cleared]";
