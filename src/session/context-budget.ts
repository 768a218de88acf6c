import type { Config } from "../config/schema.ts";
import { estimateJsonOf, estimateText, estimateTextOf } from "../message/estimate.ts";
import type { Message } from "../message/message.ts";
import { clearedOutput, type Part, type Tokens } from "../message/part.ts";
import type { Model } from "../model/model.ts";

/** More of the window than this is never kept free for an answer (system.md 4). */
const outputReserve = 32_000;
/** Share of the window that stays free when the configuration says nothing. */
const freeShare = 0.05;
/** What an image or a page costs, roughly. */
const mediaTokens = 1_500;

/** Tokens that a request may have; undefined where the model's window is unknown. */
export function usableWindow(model: Model, config: Config): number | undefined {
  const { context, input, output } = model.limit;
  const window =
    input ?? (context === undefined ? undefined : context - Math.min(output ?? outputReserve, outputReserve));
  if (window === undefined) return undefined;
  const reserve = config.compaction?.reserved ?? Math.round(window * freeShare);
  return Math.max(1, window - reserve);
}

/** Tokens in the context after a model call: what it read and what it wrote. */
export function contextTokens({ input, output, reasoning, cache }: Tokens): number {
  return input + cache.read + cache.write + output + reasoning;
}

/** What the model would read of these messages, estimated. */
export function estimateMessages(messages: readonly Message[]): number {
  return messages.reduce((sum, message) => sum + estimateMessage(message), 0);
}

export function estimateMessage({ parts }: Message): number {
  return parts.reduce((sum, part) => sum + estimatePart(part), 0);
}

/** The output of a call alone, which is what pruning can win. */
export function estimateOutput(part: Part): number {
  if (part.type !== "tool") return 0;
  const { state } = part;
  if (state.status === "error") return estimateTextOf(state, state.error);
  if (state.status !== "completed") return 0;
  if (state.compactedAt !== undefined) return estimateText(clearedOutput);
  return estimateTextOf(state, state.output) + (state.attachments?.length ?? 0) * mediaTokens;
}

function estimatePart(part: Part): number {
  switch (part.type) {
    case "text":
      return part.ignored ? 0 : estimateTextOf(part, part.text);
    case "reasoning":
      return 0;
    case "file":
      return part.mime.startsWith("text/") ? 0 : mediaTokens;
    case "tool":
      return estimateInput(part.state.input) + estimateOutput(part);
    default:
      return 0;
  }
}

function estimateInput(input: unknown): number {
  return typeof input === "object" && input !== null
    ? estimateJsonOf(input)
    : estimateText(JSON.stringify(input ?? {}));
}
