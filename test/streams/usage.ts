import type { Tokens } from "../../src/message/part.ts";

type Counts = Readonly<Record<string, unknown>>;

/** A server's usage report, and the usage that it means. */
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

/** Usage formats by sender; all describe the same answer. */
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
  /** SGLang counts reasoning next to the details. */
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
  /** Together and Moonshot report cached tokens next to the counts. */
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
  /** Anthropic's names; cached tokens are counted separately. */
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

/** The same answer as OpenAI's Responses API counts it. */
const responses = (counts: Counts, { read = 0, write = 0, reasoning = 0 } = {}): UsageForm =>
  form(
    { input_tokens: prompt, output_tokens: completion, total_tokens: prompt + completion, ...counts },
    {
      read,
      write,
      reasoning,
    },
  );

/** Usage formats of the Responses API. */
export const responsesUsage = {
  openai: responses(
    {
      input_tokens_details: { cached_tokens: cached },
      output_tokens_details: { reasoning_tokens: thought },
    },
    { read: cached, reasoning: thought },
  ),
  withWrites: responses(
    {
      input_tokens_details: { cache_write_tokens: 100, cached_tokens: cached },
      output_tokens_details: { reasoning_tokens: thought },
    },
    { read: cached, write: 100, reasoning: thought },
  ),
  xai: responses(
    {
      input_tokens_details: { cached_tokens: cached },
      output_tokens_details: { reasoning_tokens: thought },
      num_sources_used: 0,
      num_server_side_tools_used: 0,
    },
    { read: cached, reasoning: thought },
  ),
  openrouter: responses(
    {
      input_tokens_details: { cached_tokens: cached },
      output_tokens_details: { reasoning_tokens: thought },
      cost: 0.0012,
      is_byok: false,
      cost_details: { upstream_inference_cost: null, upstream_inference_input_cost: 0.001 },
    },
    { read: cached, reasoning: thought },
  ),
  bare: responses({}),
} as const satisfies Record<string, UsageForm>;

/** A server's usage reports over the Messages API: at the start, at the end, and the usage that both mean. */
export interface MessagesUsage {
  readonly start: Counts;
  readonly end: Counts;
  readonly tokens: Tokens;
}

const fresh = prompt - cached - 100;
const cacheCounts = { cache_creation_input_tokens: 100, cache_read_input_tokens: cached };
const noCache = { cache_creation_input_tokens: 0, cache_read_input_tokens: 0 };
const lifetimes = { ephemeral_5m_input_tokens: 100, ephemeral_1h_input_tokens: 0 };
const cachedTokens: Tokens = {
  input: fresh,
  output: completion,
  reasoning: 0,
  cache: { read: cached, write: 100 },
};
const plainTokens: Tokens = { input: prompt, output: completion, reasoning: 0, cache: { read: 0, write: 0 } };

/** Usage formats of the Messages API, which counts cached tokens separately. */
export const messagesUsage = {
  anthropic: {
    start: {
      input_tokens: fresh,
      ...cacheCounts,
      cache_creation: lifetimes,
      output_tokens: 1,
      service_tier: "standard",
      inference_geo: "not_available",
    },
    end: { input_tokens: fresh, ...cacheCounts, output_tokens: completion },
    tokens: cachedTokens,
  },
  /** The end has only the output. */
  outputAtEnd: {
    start: { input_tokens: fresh, ...cacheCounts, output_tokens: 1 },
    end: { output_tokens: completion },
    tokens: cachedTokens,
  },
  /** A server that knows the input tokens only at the end. */
  inputAtEnd: {
    start: { input_tokens: 0, output_tokens: 0 },
    end: { input_tokens: fresh, output_tokens: completion, ...cacheCounts },
    tokens: cachedTokens,
  },
  /** An estimate first, the count at the end. */
  estimateFirst: {
    start: { input_tokens: 43, output_tokens: 1 },
    end: { input_tokens: prompt, output_tokens: completion },
    tokens: plainTokens,
  },
  bare: {
    start: { input_tokens: prompt, output_tokens: 0 },
    end: { input_tokens: prompt, output_tokens: completion },
    tokens: plainTokens,
  },
  /** Each pass over the conversation is counted as well. */
  iterations: {
    start: { input_tokens: prompt, ...noCache, output_tokens: 5 },
    end: {
      input_tokens: prompt,
      ...noCache,
      output_tokens: completion,
      server_tool_use: { web_search_requests: 0 },
      iterations: [
        { type: "message", model: "m", input_tokens: prompt, output_tokens: completion, ...noCache },
      ],
    },
    tokens: plainTokens,
  },
} as const satisfies Record<string, MessagesUsage>;
