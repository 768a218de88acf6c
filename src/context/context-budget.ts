import type { Config } from "../config/schema.ts";
import type { Tokens } from "../message/part.ts";
import type { Model } from "../model/model.ts";

/** Bounds of the tokens reserved for the answer. */
const maxReservedTokens = 32_000;
const minReservedTokens = 1_024;
/** Maximum share of the window reserved for the answer; used in full if the model's output limit is unknown. */
const reservedShare = 1 / 4;
/** Default share of the rest that a request may fill. */
const fullShare = 0.9;

/** Share of the window that one text may fill, and its minimum size. */
const textShare = 0.12;
const minTextBytes = 4 * 1024;
/** A low estimate, so that shortened texts fit. */
export const bytesPerToken = 3;

/** Maximum bytes of one text in a model's window: a tool result, or an attachment. */
export function getTextLimitBytes({ limit: { context } }: Model): number {
  if (context === undefined) return Number.MAX_SAFE_INTEGER;
  return Math.max(minTextBytes, Math.floor(context * textShare * bytesPerToken));
}

/** Maximum tokens of a request; undefined if the model's window is unknown. */
export function getUsableWindow(model: Model, config: Config): number | undefined {
  const window = getPromptWindow(model.limit);
  if (window === undefined) return undefined;
  const free = config.compaction?.reserved ?? window * (1 - fullShare);
  return Math.max(1, Math.round(window - free));
}

/** The window without the part reserved for the answer. */
function getPromptWindow({ context, input, output }: Model["limit"]): number | undefined {
  if (context === undefined) return input;
  const share = context * reservedShare;
  const reserved = Math.max(minReservedTokens, Math.min(output ?? share, maxReservedTokens, share));
  return Math.min(input ?? context, context - reserved);
}

/** Tokens in the context after a model call: input and output. */
export function sumContextTokens({ input, output, reasoning, cache }: Tokens): number {
  return input + cache.read + cache.write + output + reasoning;
}
