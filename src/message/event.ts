import type { MessageId, PartId, SessionId } from "./ids.ts";
import type { ApprovalMode, MessageInfo, ModelRef, Todo } from "./message.ts";
import type { CallDecision, Part, ToolPart } from "./part.ts";

/** One change of a session. */
export type SessionEvent = { sessionId: SessionId } & (
  | { type: "message"; info: MessageInfo }
  /** `isNew`: the part was added, with all of its text so far; more of it follows as deltas. */
  | { type: "part"; messageId: MessageId; part: Part; isNew?: boolean }
  /** Text appended to a text or reasoning part. */
  | { type: "delta"; messageId: MessageId; partId: PartId; kind: "text" | "reasoning"; delta: string }
  /** Text appended to the summary for this message; stored only when complete. */
  | { type: "summary"; messageId: MessageId; delta: string }
  /** The message's compaction has ended; estimated tokens of the request before and after. */
  | { type: "compacted"; messageId: MessageId; size: number; left: number }
  /** Live output of a running call; not stored, because the call's result contains it. */
  | { type: "tool-output"; messageId: MessageId; partId: PartId; callId: string; delta: string }
  /** Live output of a job, whose call is already answered; not stored. */
  | { type: "job-output"; callId: string; delta: string }
  /** A job ended. The part is its call with the end. */
  | { type: "job-ended"; messageId: MessageId; part: ToolPart }
  | { type: "usage"; usage: Usage }
  | { type: "title"; title: string; updatedAt: number }
  | { type: "todos"; todos: Todo[] }
  | { type: "agent"; agent: string }
  | { type: "model"; model: ModelRef | undefined }
  | { type: "approval"; approval: ApprovalMode }
  /** A setting of the session changed. */
  | { type: "options" }
  /** The list of slash commands changed. */
  | { type: "commands" }
  /** A call of the session or of one of its children was decided. */
  | { type: "decision"; callId: string; decision: CallDecision }
  /** An event of the child session that a task call started. */
  | { type: "child"; callId: string; child: Child; event: SessionEvent }
  | { type: "notice"; severity: "info" | "warning" | "error"; text: string; isOfJob?: true }
);

/** A child session that runs a task call. */
export interface Child {
  readonly id: SessionId;
  readonly agent: string;
  readonly title: string;
}

/** Tokens in the model's context, its window size if known, and dollars spent in the session. */
export interface Usage {
  used: number;
  size: number | undefined;
  cost: number | undefined;
}

/** Emits an event. Must not throw. */
export type Emit = (event: SessionEvent) => void;
