import { createSha256 } from "../base/text/hash.ts";
import type { ToolResult } from "../tool/tool.ts";

/** Longest detected cycle, in calls. */
const longestCycle = 4;
/** Repetitions of a cycle that count as a loop. */
const rounds = 3;

/** A call's input and result, reduced for comparison. */
export interface CallFingerprint {
  /** Equal for the same tool and input. */
  readonly call: string;
  /** Equal for the same result; undefined while the call runs and for a refused loop. Undefined matches any result. */
  result?: string;
}

export function fingerprintCall(tool: string, input: unknown): CallFingerprint {
  return { call: `${tool} ${JSON.stringify(input)}` };
}

/** Returns a hash of the result's content, without notes, which may name a new file each time. */
export function fingerprintResult(result: ToolResult | { status: "refused"; error: string }): string {
  const exitCode = "metadata" in result ? result.metadata?.["exitCode"] : undefined;
  const attachments = result.status === "completed" ? result.attachments : undefined;
  return createSha256()
    .update(JSON.stringify([result.status, exitCode, attachments]))
    .update(result.status === "completed" ? result.output : result.error)
    .digest("base64");
}

/** Whether the newest calls of a turn are three rounds of a cycle of one to four calls with equal results. */
export function isDoomLoop(calls: readonly CallFingerprint[]): boolean {
  for (let length = 1; length <= longestCycle; length++) {
    if (endsInCycle(calls, length)) return true;
  }
  return false;
}

function endsInCycle(calls: readonly CallFingerprint[], length: number): boolean {
  const start = calls.length - length * rounds;
  if (start < 0) return false;
  for (let index = start; index < calls.length - length; index++) {
    if (!isSame(calls[index], calls[index + length])) return false;
  }
  return true;
}

function isSame(left: CallFingerprint | undefined, right: CallFingerprint | undefined): boolean {
  if (left?.call !== right?.call) return false;
  return left?.result === undefined || right?.result === undefined || left.result === right.result;
}
