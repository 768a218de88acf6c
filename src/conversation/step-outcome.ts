import type { AgentError } from "../message/message.ts";
import type { Tokens } from "../message/part.ts";
import type { WrittenCalls } from "../model/answer/written-calls/find-calls.ts";

/** Outcome of one model call and its tool calls. */
export type StepOutcome = { tokens: Tokens; cost: number; isEstimated: boolean } & (
  | { end: "finished" | "empty" | "outputLimit" | "refused" | "rejected" | "cancelled" }
  /** `hasRefusedCall`: the provider refused to pass a call on. */
  | { end: "calls"; hasRefusedCall: boolean }
  | { end: "leaked"; calls: WrittenCalls }
  | { end: "failed"; error: AgentError }
);
