import { createHash } from "node:crypto";
import type { ToolResult } from "../tool/tool.ts";

/** The longest cycle of calls that is looked for. */
const longestCycle = 4;
/** How often a cycle must have come round to count as a loop. */
const rounds = 3;

/** A call as far as loops are concerned. */
export interface CallFingerprint {
  /** The same for the same tool with the same input. */
  readonly call: string;
  /** The same for the same result; undefined while the call runs and if a loop was refused. Then any result matches. */
  result?: string;
}

export function fingerprintCall(tool: string, input: unknown): CallFingerprint {
  return { call: `${tool} ${JSON.stringify(input)}` };
}

/** Identifies a result by its content: the notes may name a new file each time. */
export function fingerprintResult(result: ToolResult | { status: "refused"; error: string }): string {
  const exitCode = "metadata" in result ? result.metadata?.["exitCode"] : undefined;
  const attachments = result.status === "completed" ? result.attachments : undefined;
  return createHash("sha256")
    .update(JSON.stringify([result.status, exitCode, attachments]))
    .update(result.status === "completed" ? result.output : result.error)
    .digest("base64");
}

/** Whether the newest of a turn's calls closes the third round of a cycle of one to four calls with equal results. */
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
