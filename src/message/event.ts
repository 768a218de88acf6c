import type { Backpressure } from "../base/async.ts";
import type { MessageId, PartId, SessionId } from "./ids.ts";
import type { ApprovalMode, MessageInfo, ModelRef, Todo } from "./message.ts";
import type { Part } from "./part.ts";

/** One change of a session. */
export type SessionEvent = { sessionId: SessionId } & (
  | { type: "message"; info: MessageInfo }
  | { type: "part"; messageId: MessageId; part: Part }
  /** Text appended to a text or reasoning part. */
  | { type: "delta"; messageId: MessageId; partId: PartId; kind: "text" | "reasoning"; delta: string }
  /** Text appended to the summary that is written for this message; not stored before it is whole. */
  | { type: "summary"; messageId: MessageId; delta: string }
  /** Live output of a running call; not stored, the call's result has it. */
  | { type: "tool-output"; messageId: MessageId; partId: PartId; callId: string; delta: string }
  | { type: "usage"; usage: Usage }
  | { type: "title"; title: string; updatedAt: number }
  | { type: "todos"; todos: Todo[] }
  | { type: "agent"; agent: string }
  | { type: "model"; model: ModelRef | undefined }
  | { type: "approval"; approval: ApprovalMode }
  /** Another setting of the session. */
  | { type: "options" }
  /** What can be called with a slash is another list now. */
  | { type: "commands" }
  /** Something happened in the child session that a task call of this one began. */
  | { type: "child"; callId: string; child: Child; event: SessionEvent }
  | { type: "notice"; severity: "info" | "warning" | "error"; text: string }
);

/** A session that works for a task call of another. */
export interface Child {
  readonly id: SessionId;
  readonly agent: string;
  readonly title: string;
}

/** Tokens now in the model's context, the size of its window where known, and dollars spent in the session so far. */
export interface Usage {
  used: number;
  size: number | undefined;
  cost: number | undefined;
}

/** Emits an event; await the result to respect backpressure. */
export type Emit = (event: SessionEvent) => Backpressure;
