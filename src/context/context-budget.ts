import type { Config } from "../config/schema.ts";
import type { Tokens } from "../message/part.ts";
import type { Model } from "../model/model.ts";

/** Tokens of the window that are reserved for the answer: what it may have, between these bounds. */
const mostReserved = 32_000;
const leastReserved = 1_024;
/** Share of the window that is reserved for the answer at most, and where its limit is unknown. */
const reservedShare = 1 / 4;
/** Share of the rest that a request may fill when the configuration says nothing. */
const fullShare = 0.9;

/** Share of the window that one text may have, and its least bytes. */
const textShare = 0.12;
const leastTextBytes = 4 * 1024;
/** Bytes of a token, low on purpose: what is shortened must fit. */
export const bytesPerToken = 3;

/** Bytes that one text may have in a model's window: a result, or what comes with a message. */
export function largestText({ limit: { context } }: Model): number {
  if (context === undefined) return Number.MAX_SAFE_INTEGER;
  return Math.max(leastTextBytes, Math.floor(context * textShare * bytesPerToken));
}

/** Tokens that a request may have; undefined where the model's window is unknown. */
export function usableWindow(model: Model, config: Config): number | undefined {
  const window = promptWindow(model.limit);
  if (window === undefined) return undefined;
  const free = config.compaction?.reserved ?? window * (1 - fullShare);
  return Math.max(1, Math.round(window - free));
}

/** The window without what is reserved for the answer. */
function promptWindow({ context, input, output }: Model["limit"]): number | undefined {
  if (context === undefined) return input;
  const share = context * reservedShare;
  const reserved = Math.max(leastReserved, Math.min(output ?? share, mostReserved, share));
  return Math.min(input ?? context, context - reserved);
}

/** Tokens in the context after a model call: what it read and what it wrote. */
export function contextTokens({ input, output, reasoning, cache }: Tokens): number {
  return input + cache.read + cache.write + output + reasoning;
}
