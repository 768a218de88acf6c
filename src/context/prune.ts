import { estimateOutput } from "../message/estimate-request.ts";
import type { MessageId } from "../message/ids.ts";
import type { Message } from "../message/message.ts";
import type { ToolPart } from "../message/part.ts";
import { limitOutput } from "../tool/output-limit.ts";
import { bytesPerToken } from "./context-budget.ts";
import type { Transcript } from "../conversation/transcript.ts";
import { isFinishedSummary } from "../conversation/visible-messages.ts";

/** Limits for clearing old outputs. Tokens are estimates. */
export interface PruneLimits {
  /** Number of newest turns that are not cleared. */
  keepTurns: number;
  /** Tokens of the newest outputs that stay. */
  keepTokens: number;
  /** Clears nothing if it would save fewer tokens. */
  leastTokens: number;
  /** The outputs of the newest step stay: the model may not have seen them. */
  keepsNewestStep?: boolean;
}

export const pruneLimits: PruneLimits = { keepTurns: 2, keepTokens: 40_000, leastTokens: 20_000 };

/** Tools whose output is an instruction, not a finding. */
const protectedTools = new Set(["skill"]);

export interface Prunable {
  messageId: MessageId;
  part: CompletedCall;
}

type CompletedCall = ToolPart & { state: { status: "completed" } };

/** Returns the outputs to clear: completed and old. Stops at the newest summary. */
export function findPrunable(messages: readonly Message[], limits: PruneLimits): Prunable[] {
  const found: Prunable[] = [];
  const newestStep = limits.keepsNewestStep === true ? messages.findLast(isStep) : undefined;
  let turns = 0;
  let kept = 0;
  let won = 0;
  for (const message of messages.toReversed()) {
    if (isFinishedSummary(message)) break;
    if (message.info.role === "user") turns++;
    if (turns < limits.keepTurns || message === newestStep) continue;
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

/** Clears old outputs for the model; the user still sees them. Returns whether there were any. */
export async function prune(transcript: Transcript, limits: PruneLimits): Promise<boolean> {
  const prunable = findPrunable(transcript.messages, limits);
  const compactedAt = Date.now();
  for (const [messageId, found] of Map.groupBy(prunable, (one) => one.messageId)) {
    const parts = found.map(({ part }) => ({ ...part, state: { ...part.state, compactedAt } }));
    await transcript.amendParts(messageId, parts);
  }
  return prunable.length > 0;
}

/** True for an assistant message with calls. */
export const isStep = ({ info, parts }: Message): boolean =>
  info.role === "assistant" && parts.some(({ type }) => type === "tool");

export interface ShortenLimits {
  /** For all outputs of the step together. */
  readonly mostTokens: number;
  /** No output is shortened below this. */
  readonly leastBytes: number;
  /** Folder for the complete outputs. */
  readonly folder: string;
}

/**
 * Shortens the outputs of a step for the model to about this many tokens in total. Returns whether any became
 * shorter.
 */
export async function shortenStep(
  transcript: Transcript,
  { info, parts }: Message,
  { mostTokens, leastBytes, folder }: ShortenLimits,
): Promise<boolean> {
  const outputs = parts.filter(isPrunable);
  const total = outputs.reduce((sum, part) => sum + estimateOutput(part), 0);
  const shortened: ToolPart[] = [];
  for (const part of outputs) {
    const share = (mostTokens * estimateOutput(part)) / Math.max(1, total);
    const maxBytes = Math.max(leastBytes, Math.floor(share * bytesPerToken));
    const { state } = part;
    const shown = state.shownOutput ?? state.output;
    // Includes the note about the omitted part.
    if (Buffer.byteLength(shown) <= maxBytes + noteBytes) continue;
    const keep = part.kind === "execute" ? "tail" : "head";
    const { text } = await limitOutput(state.output, { maxBytes, folder, keep });
    shortened.push({ ...part, state: { ...state, shownOutput: text } });
  }
  if (shortened.length > 0) await transcript.amendParts(info.id, shortened);
  return shortened.length > 0;
}

/** Approximate size of the note that {@link limitOutput} adds. */
const noteBytes = 512;

function isPrunable(part: Message["parts"][number]): part is CompletedCall {
  return (
    part.type === "tool" &&
    part.state.status === "completed" &&
    part.state.compactedAt === undefined &&
    !protectedTools.has(part.tool)
  );
}
