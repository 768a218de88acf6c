import { z } from "zod";
import { messageIdSchema, partIdSchema } from "./ids.ts";
import { modelRefSchema } from "./model-ref.ts";

/** Tool kinds as ACP defines them; editors choose an icon by kind. */
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
 * A call's change of one file. `before` and `after` are content hashes in the snapshot store (SHA-256, hex); null
 * means "no such file", undefined means "not stored" (too large or not text), which cannot be shown or undone.
 */
export const fileChangeSchema = z.object({
  path: z.string(),
  operation: z.enum(fileOperations),
  fromPath: z.string().optional(),
  before: z.string().nullish(),
  after: z.string().nullish(),
  additions: z.number().int().nonnegative(),
  deletions: z.number().int().nonnegative(),
  /** Permission bits before the change, if not the default; undo restores them. */
  mode: z.number().int().nonnegative().max(0o777).optional(),
  /** Permission bits after the change, if they differ from `mode`. */
  newMode: z.number().int().nonnegative().max(0o777).optional(),
  /** Whether the contents before and after are targets of symbolic links. */
  wasLink: z.literal(true).optional(),
  isLink: z.literal(true).optional(),
});
export type FileChange = z.infer<typeof fileChangeSchema>;

/** Media from a tool or the user: base64 in a `data:` URL, or a `file:` URL. */
export const attachmentSchema = z.object({
  mime: z.string(),
  url: z.string(),
  filename: z.string().optional(),
});
export type Attachment = z.infer<typeof attachmentSchema>;

/** Start and end in milliseconds since 1970. */
const spanSchema = z.object({ start: z.number(), end: z.number().optional() });

export const providerDataSchema = z.record(z.string(), z.json());

/** Data of a provider about a part. Sent back as it came, and only to the model and API that it came from. */
export const providerMetadataSchema = z.object({
  provider: z.string(),
  model: z.string(),
  api: z.string(),
  /** The host of the base URL. */
  host: z.string().optional(),
  data: providerDataSchema,
});
export type ProviderMetadata = z.infer<typeof providerMetadataSchema>;
/** To whom a provider's data belongs. */
export type MetadataOwner = Omit<ProviderMetadata, "data">;

const textPartSchema = z.object({
  id: partIdSchema,
  type: z.literal("text"),
  text: z.string(),
  /** Written by the program, not by the user or the model: the model sees it, the editor does not. */
  synthetic: z.boolean().optional(),
  /** Only for the user: the model does not see it. */
  ignored: z.boolean().optional(),
  /** For a reminder of changes to the system prompt: digests of the changed sources, empty for removed ones. */
  sources: z.record(z.string(), z.string()).optional(),
  providerMetadata: providerMetadataSchema.optional(),
  time: spanSchema.optional(),
});

const reasoningPartSchema = z.object({
  id: partIdSchema,
  type: z.literal("reasoning"),
  text: z.string(),
  metadata: z.record(z.string(), z.unknown()).optional(),
  providerMetadata: providerMetadataSchema.optional(),
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

/** The decision whether a call may run, with its rule. `permission` and `subject` name the decisive part. */
export const callDecisionSchema = z.object({
  outcome: z.enum(decisionOutcomes),
  by: z.enum(deciders),
  permission: z.string(),
  subject: z.string(),
  rule: z.object({ permission: z.string(), pattern: z.string(), action: z.string() }).optional(),
  /** Milliseconds that the call waited for the user. */
  waitedMs: z.number().optional(),
  /** The user's reason for a rejection, possibly shortened. */
  feedback: z.string().optional(),
});
export type CallDecision = z.infer<typeof callDecisionSchema>;

/** Absent while the model is still writing the arguments, and if they were cut off. */
const inputSchema = z.unknown().optional();

export const jobEndStates = ["completed", "failed", "stopped", "lost"] as const;

/** Work of a call that continues after the call was answered. */
export const jobSchema = z.object({
  /** Number in the session. */
  id: z.number().int().positive(),
  /** Absent while it runs. */
  end: z
    .object({
      /** `stopped`: on request; `lost`: the program ended first. */
      state: z.enum(jobEndStates),
      /** For the user and the model, such as "ended with exit code 1". */
      description: z.string(),
      /** Its output, or a task's report; only the end if it is long. */
      output: z.string(),
      exitCode: z.number().nullish(),
      signal: z.string().nullish(),
      time: z.number(),
      /** Whether the model knows about the end. */
      isReported: z.boolean().optional(),
    })
    .optional(),
});
export type JobRecord = z.infer<typeof jobSchema>;
export type JobEnd = NonNullable<JobRecord["end"]>;

const pendingStateSchema = z.object({ status: z.literal("pending"), input: inputSchema });
const runningStateSchema = z.object({
  status: z.literal("running"),
  input: inputSchema,
  time: spanSchema,
});
const completedStateSchema = z.object({
  status: z.literal("completed"),
  input: inputSchema,
  /** The output for the model, already truncated. */
  output: z.string(),
  attachments: z.array(attachmentSchema).optional(),
  changes: z.array(fileChangeSchema).optional(),
  /** Small data for the editor and for tools that continue (exit code, child session). */
  metadata: z.record(z.string(), z.unknown()).optional(),
  /** Set if the call's work continued in the background. */
  job: jobSchema.optional(),
  time: spanSchema,
  /** When pruning cleared the output for the model. */
  compactedAt: z.number().optional(),
  /** Shortened output for the model, when the whole one does not fit into its context. */
  shownOutput: z.string().optional(),
});
const errorStateSchema = z.object({
  status: z.literal("error"),
  input: inputSchema,
  /** Error for the model: what went wrong and what to do about it. */
  error: z.string(),
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
  /** Unique in the session, created by the program. `providerCallId` has the provider's id. */
  callId: z.string(),
  providerCallId: z.string().optional(),
  providerMetadata: providerMetadataSchema.optional(),
  tool: z.string(),
  /** The call as the model wrote it, if another one is run: `input` is a text if it was not JSON. */
  sent: z
    .object({
      tool: z.string(),
      input: z.unknown().optional(),
      /** The name of the call that contained it. */
      wrapper: z.string().optional(),
    })
    .optional(),
  /** The tool through which the model called this one. */
  through: z.string().optional(),
  /** The part of the answer that contains the call, if the model wrote it as text. */
  markup: z.string().optional(),
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

const stepStartPartSchema = z.object({ id: partIdSchema, type: z.literal("step-start") });
const stepFinishPartSchema = z.object({
  id: partIdSchema,
  type: z.literal("step-finish"),
  reason: z.string(),
  tokens: tokensSchema,
  /** US dollars. */
  cost: z.number(),
  /** Records of the reasoning before the calls of the step, sent back with the calls. */
  providerMetadata: providerMetadataSchema.optional(),
});
const snapshotPartSchema = z.object({ id: partIdSchema, type: z.literal("snapshot"), snapshot: z.string() });
/** The files that one step changed. */
const patchPartSchema = z.object({
  id: partIdSchema,
  type: z.literal("patch"),
  changes: z.array(fileChangeSchema),
});
/** Content that the program preserves for the model across a compaction, in addition to the summary. */
const carriedSchema = z.object({
  /** Texts of the user's earlier messages, oldest first. */
  requests: z.array(z.string()).optional(),
  /** One line each. */
  todos: z.array(z.string()).optional(),
  changed: z.array(z.string()).optional(),
  /** Beginnings of the content hashes (SHA-256, hex) of changed files after the last change; null for deleted ones. */
  hashes: z.record(z.string(), z.string().nullable()).optional(),
  read: z.array(z.string()).optional(),
  /** The path of the newest plan file. */
  plan: z.string().optional(),
  /** The last failed command; `end` says how it ended, `output` is the end of what it printed. */
  failed: z.object({ command: z.string(), end: z.string(), output: z.string() }).optional(),
  skills: z.array(z.object({ name: z.string(), text: z.string() })).optional(),
  /** Jobs that run. */
  jobs: z
    .array(
      z.object({
        id: z.number().int().positive(),
        title: z.string(),
        /** The child session of a task. */
        taskId: z.string().optional(),
        messageId: messageIdSchema,
        callId: z.string(),
      }),
    )
    .optional(),
  /** The highest number of a job so far. */
  lastJob: z.number().int().positive().optional(),
});
export type Carried = z.infer<typeof carriedSchema>;

const compactionPartSchema = z.object({
  id: partIdSchema,
  type: z.literal("compaction"),
  auto: z.boolean(),
  instruction: z.string().optional(),
  /** The first of the recent messages that stay verbatim after the summary. */
  keepFrom: messageIdSchema.optional(),
  /** The user's unanswered message, which stays verbatim regardless of age. */
  question: messageIdSchema.optional(),
  carried: carriedSchema.optional(),
  /** Estimated tokens of the request before and after. */
  size: z.number().optional(),
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

/** The kind of a check. `check`: several kinds at once, such as `npm run check`. */
export const checkKinds = ["test", "build", "types", "lint", "check"] as const;
export type CheckKind = (typeof checkKinds)[number];

/** A command of a turn. `hidden`: the exit code does not say whether it succeeded. */
const commandRunSchema = z.object({
  command: z.string(),
  /** Empty for commands that are not known checks. */
  kinds: z.array(z.enum(checkKinds)),
  end: z.enum(["passed", "failed", "hidden", "background", "running", "stopped", "cancelled"]),
  exitCode: z.number().int().optional(),
});
export type CommandRun = z.infer<typeof commandRunSchema>;

/** The changes of a turn, the runs after its last change, and the model's claims that no passing run proves. */
const evidencePartSchema = z.object({
  id: partIdSchema,
  type: z.literal("evidence"),
  /** Changed files as the user sees their paths, and how many more there are. */
  files: z.array(z.string()),
  moreFiles: z.number().int().optional(),
  /** Commands that changed files. */
  changedBy: z.array(z.string()).optional(),
  /** Commands after the last change. */
  after: z.array(commandRunSchema),
  /** Checks before the last change that were not run again. */
  before: z.array(commandRunSchema),
  /** Titles of calls after the last change whose effect is unknown. */
  calls: z.array(z.string()).optional(),
  /** Checks that the model says have succeeded, without a passing run after the last change. */
  unproven: z.array(
    z.object({
      claim: z.enum(checkKinds),
      reason: z.enum(["none", "before", "run"]),
      run: commandRunSchema.optional(),
    }),
  ),
});
export type EvidencePart = z.infer<typeof evidencePartSchema>;

/** One change of a file that can be dropped alone. Each text change is a hunk; the others are changes of whole files. */
const changeItemSchema = z.object({
  kind: z.enum(["hunk", "created", "deleted", "renamed", "mode", "link", "binary", "not-stored"]),
  /** First line of a hunk in the file as it is now, from 1. */
  line: z.number().optional(),
  additions: z.number(),
  deletions: z.number(),
  /** Whether the user has changed the same place since. */
  isContested: z.literal(true).optional(),
});
export type ChangeItem = z.infer<typeof changeItemSchema>;

/** A file's net change. The content before it includes the user's own edits. */
const listedChangeSchema = z.object({
  change: fileChangeSchema,
  items: z.array(changeItemSchema),
  /** Whether the user has changed the file since the agent did. */
  isEdited: z.literal(true).optional(),
});
export type ListedChange = z.infer<typeof listedChangeSchema>;

/** The net changes of a turn or of the session, as shown to the user. Items are numbered from 1, in this order. */
const changesPartSchema = z.object({
  id: partIdSchema,
  type: z.literal("changes"),
  /** First words of the turn; absent for the whole session. */
  turn: z.string().optional(),
  /** Whether later turns have changed files too. */
  isOlder: z.literal(true).optional(),
  files: z.array(listedChangeSchema),
  /** The files that the card shows, some or all, with their numbers in the metadata. */
  title: z.string(),
  paths: z.array(z.string()),
  metadata: z.record(z.string(), z.unknown()),
});
export type ChangesPart = z.infer<typeof changesPartSchema>;

/** Changes by which the user dropped changes of the agent, or restored dropped ones. */
const dropPartSchema = z.object({
  id: partIdSchema,
  type: z.literal("drop"),
  changes: z.array(fileChangeSchema),
  /** Whether the changes restore dropped ones. */
  isRedo: z.literal(true).optional(),
  /** False until the files are changed: the next start of the session completes it. */
  isDone: z.boolean(),
});
export type DropPart = z.infer<typeof dropPartSchema>;

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
  evidencePartSchema,
  changesPartSchema,
  dropPartSchema,
]);
export type Part = z.infer<typeof partSchema>;
export type TextPart = z.infer<typeof textPartSchema>;
export type ReasoningPart = z.infer<typeof reasoningPartSchema>;
export type FilePart = z.infer<typeof filePartSchema>;
export type CompactionPart = z.infer<typeof compactionPartSchema>;
export type SubtaskPart = z.infer<typeof subtaskPartSchema>;
export type ToolPart = z.infer<typeof toolPartSchema>;

/** Returns a completed call's output for the model, unless it is cleared. */
export const visibleOutput = ({ output, shownOutput }: CompletedState): string => shownOutput ?? output;

export const isFinished = (state: ToolState): boolean =>
  state.status === "completed" || state.status === "error";

/** Whether the work of an answered call still runs. */
export const hasRunningJob = (state: ToolState): boolean =>
  state.status === "completed" && state.job !== undefined && state.job.end === undefined;

/** Returns the part with the end of its job; other parts unchanged. */
export function endJob(part: ToolPart, end: JobEnd): ToolPart {
  const { state } = part;
  if (state.status !== "completed" || state.job === undefined) return part;
  return { ...part, state: { ...state, job: { ...state.job, end } } };
}

/** Returns the end of a job whose program ended first. */
export function createLostEnd({ state }: ToolPart): JobEnd {
  const output = state.status === "completed" ? state.output : "";
  return { state: "lost", description: "ended with the program", output, time: Date.now() };
}

/** Replaces an output that was cleared for the model. */
export const clearedOutput = "[Old tool result content cleared]";
