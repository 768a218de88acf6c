import type { MessageId } from "../message/ids.ts";
import type { Message } from "../message/message.ts";
import type { ToolPart } from "../message/part.ts";
import { estimateOutput } from "./context-budget.ts";
import { isFinishedSummary } from "./visible-messages.ts";

/** How much stays, and what is worth the trouble (system.md 4). Tokens are estimates. */
export interface PruneLimits {
  /** The newest so many turns are left alone. */
  keepTurns: number;
  /** The newest so many tokens of output stay. */
  keepTokens: number;
  /** Nothing is done for less. */
  leastTokens: number;
}

export const pruneLimits: PruneLimits = { keepTurns: 2, keepTokens: 40_000, leastTokens: 20_000 };
/** When compacting did not help: only the running turn's newest step keeps its outputs. */
export const hardPruneLimits: PruneLimits = { keepTurns: 0, keepTokens: 4_000, leastTokens: 1 };

/** Tools whose output is an instruction, not a finding. */
const protectedTools = new Set(["skill"]);

export interface Prunable {
  messageId: MessageId;
  part: ToolPart & { state: { status: "completed" } };
}

/** The outputs that can be cleared: old, completed, many; none before the newest summary. */
export function findPrunable(messages: readonly Message[], limits: PruneLimits): Prunable[] {
  const found: Prunable[] = [];
  let turns = 0;
  let kept = 0;
  let won = 0;
  for (const message of messages.toReversed()) {
    if (isFinishedSummary(message)) break;
    if (message.info.role === "user") turns++;
    if (turns < limits.keepTurns) continue;
    for (const part of message.parts.toReversed()) {
      if (!isPrunable(part)) continue;
      const tokens = estimateOutput(part);
      kept += tokens;
      if (kept <= limits.keepTokens) continue;
      won += tokens;
      found.push({ messageId: message.info.id, part });
    }
  }
  return won >= limits.leastTokens ? found : [];
}

function isPrunable(part: Message["parts"][number]): part is Prunable["part"] {
  return (
    part.type === "tool" &&
    part.state.status === "completed" &&
    part.state.compactedAt === undefined &&
    !protectedTools.has(part.tool)
  );
}
