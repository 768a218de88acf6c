import { expect, test } from "vitest";
import { parseErrorAnswer } from "../../../../src/model/failure.ts";

const refusals: [string, string, number][] = [
  [
    "OpenAI",
    "This model's maximum context length is 8192 tokens. However, your messages resulted in 9120 tokens.",
    8_192,
  ],
  [
    "vLLM",
    "This model's maximum context length is 32768 tokens. However, you requested 40960 tokens (36864 in the messages, 4096 in the completion).",
    32_768,
  ],
  [
    "vLLM's engine",
    "The decoder prompt (length 9000) is longer than the maximum model length of 8192.",
    8_192,
  ],
  ["SGLang", "The input (9000 tokens) is longer than the model's context length (8192 tokens).", 8_192],
  [
    "OpenRouter",
    "This endpoint's maximum context length is 131,072 tokens. However, you requested about 150000 tokens.",
    131_072,
  ],
  ["Anthropic", "prompt is too long: 210000 tokens > 200000 maximum", 200_000],
  [
    "Anthropic with output",
    "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000, decrease input length",
    200_000,
  ],
  [
    "Gemini",
    "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
    1_048_576,
  ],
  [
    "Mistral",
    "Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length",
    32_768,
  ],
  ["xAI", "This model's maximum prompt length is 131072 but the request contains 150000 tokens.", 131_072],
  [
    "llama.cpp",
    "request (9000 tokens) exceeds the available context size (8192 tokens), try increasing it",
    8_192,
  ],
  [
    "LM Studio",
    "Trying to keep the first 5000 tokens when context the overflows. However, the model is loaded with context length of only 4096 tokens, which is not enough.",
    4_096,
  ],
  [
    "LM Studio's engine",
    "The number of tokens to keep from the initial prompt is greater than the context length (n_keep: 5000 >= n_ctx: 4096)",
    4_096,
  ],
  [
    "Moonshot",
    "Invalid request: Your request exceeded model token limit: 131072 (requested: 150000)",
    131_072,
  ],
  [
    "Together AI",
    "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 8193. Given: 9000 `inputs` tokens and 512 `max_new_tokens`",
    8_193,
  ],
  ["Fireworks", "The prompt is too long: 140000, model maximum context length: 131071", 131_071],
  [
    "Cerebras",
    "Please reduce the length of the messages or completion. Current length is 9000 while limit is 8192",
    8_192,
  ],
  [
    "Cohere",
    "too many tokens: total number of tokens in the prompt cannot exceed 4081 - received 9000.",
    4_081,
  ],
  ["GitHub Copilot", "prompt token count of 150000 exceeds the limit of 128000", 128_000],
  [
    "GitHub Models",
    "Request body too large for gpt-4o model. Max size: 8000 tokens. (tokens_limit_reached)",
    8_000,
  ],
];

const answer = (message: string, status = 400) =>
  parseErrorAnswer({ status, header: () => null, body: JSON.stringify({ error: { message } }), now: 0 });

test.each(refusals)("the window that %s names is recognized", (_, message, window) => {
  expect(answer(message)).toMatchObject({ code: "context-length", window });
});

test("llama.cpp names it in a field", () => {
  const error = {
    code: 400,
    message: "the request exceeds the available context size",
    type: "exceed_context_size_error",
    n_prompt_tokens: 9_000,
    n_ctx: 8_192,
  };
  const body = JSON.stringify({ error });
  expect(parseErrorAnswer({ status: 400, header: () => null, body, now: 0 })).toMatchObject({
    code: "context-length",
    window: 8_192,
  });
});

test.each([
  ["Groq names none", "Please reduce the length of the messages or completion."],
  ["a figure that is none", "maximum context length is 0 tokens"],
])("%s", (_, message) => {
  expect(answer(message)).toMatchObject({ code: "context-length" });
  expect(answer(message).window).toBeUndefined();
});

test.each([
  "Rate limit reached for tokens per minute: Limit 8000, Requested 9000",
  "The image exceeds the limit of 20 MB",
  "max_tokens is too large: 40000. This model supports at most 16384 completion tokens.",
])("%j names no window", (message) => {
  expect(answer(message).window).toBeUndefined();
});
