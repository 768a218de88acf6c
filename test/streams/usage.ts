import type { Tokens } from "../../src/message/part.ts";

type Counts = Readonly<Record<string, unknown>>;

/** How a server reports what an answer used, and what that means. */
export interface UsageForm {
  readonly counts: Counts;
  readonly tokens: Tokens;
}

const prompt = 1200;
const completion = 90;
const cached = 1000;
const thought = 40;
const plain = { prompt_tokens: prompt, completion_tokens: completion, total_tokens: prompt + completion };

const form = (counts: Counts, { read = 0, write = 0, reasoning = 0 } = {}): UsageForm => ({
  counts,
  tokens: { input: prompt - read - write, output: completion - reasoning, reasoning, cache: { read, write } },
});

/** Forms of usage by who sends them; the counts of all are of the same answer. */
export const usageForms = {
  plain: form(plain),
  plainInAnotherOrder: form({
    prompt_tokens: prompt,
    total_tokens: prompt + completion,
    completion_tokens: completion,
  }),
  nullDetails: form({ ...plain, prompt_tokens_details: null, completion_tokens_details: null }),
  openai: form(
    {
      ...plain,
      prompt_tokens_details: { cached_tokens: cached, audio_tokens: 0 },
      completion_tokens_details: {
        reasoning_tokens: thought,
        audio_tokens: 0,
        accepted_prediction_tokens: 0,
        rejected_prediction_tokens: 0,
      },
    },
    { read: cached, reasoning: thought },
  ),
  cachedOnly: form({ ...plain, prompt_tokens_details: { cached_tokens: cached } }, { read: cached }),
  reasoningOnly: form(
    { ...plain, completion_tokens_details: { reasoning_tokens: thought } },
    { reasoning: thought },
  ),
  /** SGLang counts reasoning beside the details. */
  sglang: form({ ...plain, prompt_tokens_details: null, reasoning_tokens: thought }, { reasoning: thought }),
  deepseek: form(
    {
      ...plain,
      prompt_cache_hit_tokens: cached,
      prompt_cache_miss_tokens: prompt - cached,
      completion_tokens_details: { reasoning_tokens: thought },
    },
    { read: cached, reasoning: thought },
  ),
  groq: form({ queue_time: 0.02, ...plain, prompt_time: 0.01, completion_time: 0.2, total_time: 0.21 }),
  /** Together and Moonshot put what was cached beside the counts. */
  cachedBeside: form({ ...plain, cached_tokens: cached }, { read: cached }),
  /** xAI does not count reasoning as completion. */
  xai: {
    counts: {
      prompt_tokens: prompt,
      completion_tokens: completion,
      total_tokens: prompt + completion + thought,
      prompt_tokens_details: { text_tokens: prompt, audio_tokens: 0, image_tokens: 0, cached_tokens: cached },
      completion_tokens_details: { reasoning_tokens: thought, audio_tokens: 0 },
      num_sources_used: 0,
    },
    tokens: {
      input: prompt - cached,
      output: completion,
      reasoning: thought,
      cache: { read: cached, write: 0 },
    },
  },
  openrouter: form(
    {
      ...plain,
      cost: 0.0012,
      is_byok: false,
      prompt_tokens_details: { cached_tokens: cached, cache_write_tokens: 100, audio_tokens: 0 },
      cost_details: { upstream_inference_cost: null, upstream_inference_prompt_cost: 0.001 },
      completion_tokens_details: { reasoning_tokens: thought, image_tokens: 0 },
    },
    { read: cached, write: 100, reasoning: thought },
  ),
  /** LiteLLM in front of Anthropic. */
  anthropic: form(
    {
      ...plain,
      prompt_tokens_details: { cached_tokens: cached, text_tokens: null },
      cache_creation_input_tokens: 100,
      cache_read_input_tokens: cached,
    },
    { read: cached, write: 100 },
  ),
  /** Names of Anthropic, which counts what was cached apart. */
  inputAndOutput: form(
    {
      input_tokens: prompt - cached - 100,
      output_tokens: completion,
      cache_read_input_tokens: cached,
      cache_creation_input_tokens: 100,
    },
    { read: cached, write: 100 },
  ),
  texts: form({ prompt_tokens: String(prompt), completion_tokens: String(completion), total_tokens: "1290" }),
  llamacpp: form(
    {
      cache_n: cached,
      prompt_n: prompt - cached,
      prompt_ms: 30.9,
      predicted_n: completion,
      predicted_ms: 661,
    },
    { read: cached },
  ),
} as const satisfies Record<string, UsageForm>;
