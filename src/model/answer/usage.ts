import { isRecord } from "../../base/text/record.ts";
import type { Tokens } from "../../message/part.ts";
import type { Model } from "../model.ts";

/**
 * Converts a provider's usage to tokens; returns undefined if it has none.
 *
 * - `prompt_tokens` includes cached tokens; Anthropic's `input_tokens` does not.
 * - `completion_tokens` includes reasoning for most providers. If the total shows that it does not (xAI, Gemini),
 *   reasoning is not subtracted.
 * - llama.cpp may send only timings: https://github.com/ggml-org/llama.cpp/pull/15827
 */
export function toTokens(raw: unknown): Tokens | undefined {
  if (!isRecord(raw)) return undefined;
  const promptDetails = firstRecord(raw.prompt_tokens_details, raw.input_tokens_details);
  const completionDetails = firstRecord(raw.completion_tokens_details, raw.output_tokens_details);
  const read =
    count(promptDetails.cached_tokens) ||
    count(raw.prompt_cache_hit_tokens) ||
    count(raw.cache_read_input_tokens) ||
    count(raw.cached_tokens) ||
    count(raw.cache_n);
  const write = count(promptDetails.cache_write_tokens) || count(raw.cache_creation_input_tokens);
  const isApart = raw.cache_read_input_tokens !== undefined || raw.cache_creation_input_tokens !== undefined;
  const prompt =
    count(raw.prompt_tokens) ||
    count(raw.input_tokens) + (isApart ? read + write : 0) ||
    count(raw.prompt_n) + count(raw.cache_n);
  const completion = count(raw.completion_tokens) || count(raw.output_tokens) || count(raw.predicted_n);
  if (prompt === 0 && completion === 0) return undefined;
  const reasoning =
    count(completionDetails.reasoning_tokens) ||
    count(completionDetails.thinking_tokens) ||
    count(raw.reasoning_tokens);
  const apart = reasoning > completion || count(raw.total_tokens) === prompt + completion + reasoning;
  return {
    input: Math.max(0, prompt - read - write),
    output: apart ? completion : completion - reasoning,
    reasoning,
    cache: { read, write },
  };
}

const firstRecord = (...values: readonly unknown[]): Record<string, unknown> => values.find(isRecord) ?? {};

/** Returns the cost in US dollars. Reasoning is priced as output, and the cache as input if it has no price. */
export function costOf({ cost }: Model, tokens: Tokens): number {
  if (cost === undefined) return 0;
  const inputTokens = tokens.input + tokens.cache.read + tokens.cache.write;
  const rate = cost.over?.findLast((over) => inputTokens > over.tokens) ?? cost;
  const { input, output, cacheRead = input, cacheWrite = input } = rate;
  const perMillion =
    tokens.input * input +
    (tokens.output + tokens.reasoning) * output +
    tokens.cache.read * cacheRead +
    tokens.cache.write * cacheWrite;
  return perMillion / 1_000_000;
}

/** Some servers send counts as strings. */
function count(value: unknown): number {
  const number = typeof value === "string" && value.trim() !== "" ? Number(value) : value;
  return typeof number === "number" && Number.isFinite(number) && number > 0 ? Math.round(number) : 0;
}
