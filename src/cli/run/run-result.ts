import type { StopReason } from "@agentclientprotocol/sdk";
import { RequestError } from "@agentclientprotocol/sdk";
import { isRecord } from "../../base/text/record.ts";
import { exitCodes } from "../terminal/help.ts";
import type { RefusedCall } from "./run-answers.ts";

/** Exit codes of `run` by cause. */
const codes = {
  done: exitCodes.done,
  failed: exitCodes.failed,
  unknown_command: exitCodes.usage,
  limit: exitCodes.limit,
  refused_calls: exitCodes.refused,
  model_failed: exitCodes.model,
  schema: exitCodes.schema,
  cancelled: exitCodes.cancelled,
} as const;

export type ExitReason = keyof typeof codes;

/** How a run ended, for the last line of its output. */
export interface RunResult {
  readonly exitReason: ExitReason;
  readonly exitCode: number;
  /** Empty if the run has none. */
  readonly answer: string;
  /** The answer's value, if it was requested by a schema. */
  readonly value?: unknown;
  /** Why the run has no complete answer. */
  readonly error?: string;
  readonly stopReason?: StopReason;
  readonly usage?: unknown;
  readonly refused: readonly RefusedCall[];
}

/** The response to a prompt. */
export interface TurnEnd {
  readonly stopReason: StopReason;
  readonly usage: unknown;
  /** The slash command that does not exist or did not run. */
  readonly command: { readonly name: string; readonly problem: string } | undefined;
}

/** Creates the result of a turn that ended without an error. A user who rejects a call may end it. */
export function createResult(
  end: TurnEnd,
  answer: string,
  { refused, isRejected }: { refused: readonly RefusedCall[]; isRejected: boolean },
): RunResult {
  const { stopReason, usage } = end;
  const facts = { stopReason, usage, refused };
  const withReason = (exitReason: ExitReason, more: { answer?: string; error?: string } = {}): RunResult => ({
    ...facts,
    exitReason,
    exitCode: codes[exitReason],
    answer: "",
    ...more,
  });
  switch (stopReason) {
    case "cancelled":
      return withReason("cancelled");
    case "refusal":
      return withReason("model_failed", { error: "The model refused to answer." });
    case "max_tokens":
    case "max_turn_requests":
      return withReason("limit", { answer });
    case "end_turn":
      if (end.command !== undefined)
        return withReason(end.command.problem === "unknown" ? "unknown_command" : "failed", {
          error: answer,
        });
      if (isRejected && answer === "") return withReason("cancelled");
      if (refused.length > 0) return withReason("refused_calls", { answer });
      return answer === ""
        ? withReason("failed", { error: "The turn ended without an answer." })
        : withReason("done", { answer });
  }
}

/** Creates the result of a failure. */
export function createFailure(
  exitReason: ExitReason,
  error: string,
  base: Partial<RunResult> = {},
): RunResult {
  return { refused: [], ...base, exitReason, exitCode: codes[exitReason], answer: "", error };
}

/** Returns the result's copy with the exit code of a signal. */
export function withSignal(result: RunResult, signal: NodeJS.Signals | undefined): RunResult {
  if (result.exitReason !== "cancelled" || signal === undefined) return result;
  return { ...result, exitCode: signalCodes.get(signal) ?? result.exitCode };
}

/** Exit codes of the signals that cancel a run: 128 and the signal's number. */
export const signalCodes: ReadonlyMap<NodeJS.Signals, number> = new Map([
  ["SIGHUP", 129],
  ["SIGINT", exitCodes.cancelled],
  ["SIGTERM", 143],
]);

/** Failures that the model or its provider caused. */
const modelFailures: ReadonlySet<unknown> = new Set([
  "auth",
  "rate_limit",
  "overloaded",
  "context",
  "bad_request",
  "not_found",
  "network",
  "timeout",
  "server",
  "invalid_response",
  "content_filter",
  "output_length",
]);

/** Returns the cause of a failed request. */
export function getFailureReason(error: unknown): ExitReason {
  const data = error instanceof RequestError ? error.data : undefined;
  return isRecord(data) && modelFailures.has(data["kind"]) ? "model_failed" : "failed";
}
