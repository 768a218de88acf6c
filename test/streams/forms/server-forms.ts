import * as calls from "./call-forms.ts";
import {
  type ChatForm,
  type Json,
  withReasonTwice,
  withUsageAfter,
  withUsageIn,
  withUsageInEmptyDelta,
} from "./chat-form.ts";
import { usageForms } from "../usage.ts";

const pydantic = "https://github.com/pydantic/pydantic-ai/tree/main/tests/models/cassettes";
const ruby = "https://github.com/crmne/ruby_llm/tree/main/spec/fixtures/vcr_cassettes";
const openllmetry = "https://github.com/traceloop/openllmetry/tree/main/packages";

const head = { id: "chatcmpl-1", object: "chat.completion.chunk", created: 1_790_000_000, model: "m" };
const reported = (usage: Json | undefined): Json => (usage === undefined ? {} : { usage });
const orNull = (usage: Json | undefined): Json => ({ usage: usage ?? null });
const assistant = (content: string): Json => ({ role: "assistant", content });
const detail = (text: string): Json => ({
  type: "reasoning.text",
  text,
  format: "anthropic-claude-v1",
  index: 0,
});

const openrouter = {
  source: `${pydantic}/test_openrouter/test_openrouter_streaming_reasoning.yaml`,
  before: [": OPENROUTER PROCESSING\n\n", ": OPENROUTER PROCESSING\n\n"],
  chunk: (choices: readonly Json[], usage?: Json): Json => ({
    id: "gen-1",
    provider: "Google",
    model: "m",
    object: "chat.completion.chunk",
    created: 1_790_000_000,
    choices,
    ...reported(usage),
  }),
  choice: (delta: Json, reason: string | null): Json => ({
    index: 0,
    delta: { role: "assistant", content: "", ...delta },
    finish_reason: reason,
    native_finish_reason: reason,
    logprobs: null,
  }),
  usage: usageForms.openrouter,
} satisfies Partial<ChatForm>;

const llamacpp = {
  source: "https://github.com/openai-php/client/issues/780",
  chunk: (choices: readonly Json[], usage?: Json): Json => ({
    choices,
    created: 1_790_000_000,
    id: "chatcmpl-1",
    model: "m",
    system_fingerprint: "b9554-d403f00ec",
    object: "chat.completion.chunk",
    ...reported(usage),
  }),
  choice: (delta: Json, reason: string | null): Json => ({ finish_reason: reason, index: 0, delta }),
  open: [{ role: "assistant", content: null }],
  thought: (piece: string): Json => ({ reasoning_content: piece }),
} satisfies Partial<ChatForm>;

/** Gateways and servers that people run themselves. */
export const serverForms: readonly ChatForm[] = [
  {
    ...openrouter,
    provider: "OpenRouter",
    between: ": OPENROUTER PROCESSING\n\n",
    open: [{ reasoning: null, reasoning_details: [] }],
    thought: (piece) => ({ reasoning: piece, reasoning_details: [detail(piece)] }),
    afterThoughts: [
      {
        reasoning: null,
        reasoning_details: [
          { type: "reasoning.text", signature: "c2ln", format: "anthropic-claude-v1", index: 0 },
        ],
      },
    ],
    calls: calls.cut({ content: null }),
    close: withUsageInEmptyDelta({}),
  },
  {
    ...openrouter,
    provider: "OpenRouter, encrypted thoughts",
    open: [
      {
        reasoning: null,
        reasoning_details: [
          {
            type: "reasoning.encrypted",
            data: "ZGF0YQ==",
            id: "rs_1",
            format: "openai-responses-v1",
            index: 0,
          },
        ],
      },
    ],
    calls: calls.cutFromStart,
    close: withReasonTwice({}),
  },
  {
    ...openrouter,
    provider: "OpenRouter, summaries and annotations",
    open: [
      {
        annotations: [
          { type: "url_citation", url_citation: { url: "https://example.com", title: "a, b: {c}" } },
        ],
      },
    ],
    thought: (piece) => ({
      reasoning: piece,
      reasoning_details: [{ type: "reasoning.summary", summary: piece, index: 0 }],
    }),
    calls: calls.whole({ content: null }),
    close: withUsageAfter,
  },
  {
    ...openrouter,
    provider: "OpenRouter, an error with the usage after the end",
    source: `${pydantic}/test_openrouter/test_openrouter_stream_error.yaml`,
    thought: (piece) => ({ reasoning: piece, reasoning_details: [detail(piece)] }),
    calls: calls.cut({ content: null }),
    close: (form, reason) => [
      form.chunk([openrouter.choice({ reasoning: null, reasoning_details: [] }, reason)]),
      {
        ...form.chunk([openrouter.choice({}, null)], form.usage?.counts),
        error: { code: 502, message: "Upstream idle timeout exceeded" },
      },
    ],
  },
  {
    provider: "Vercel gateway",
    source: "https://vercel.com/docs/ai-gateway/openai-compat",
    chunk: (choices, usage) => ({
      ...head,
      choices,
      ...reported(usage),
      system_fingerprint: "fp_1",
      providerMetadata: { gateway: { cost: "0.1" } },
    }),
    choice: (delta, reason) => ({
      index: 0,
      delta: { ...delta, provider_metadata: {} },
      finish_reason: reason,
      logprobs: null,
    }),
    open: [{ role: "assistant" }],
    thought: (piece) => ({ reasoning: piece, reasoning_details: [{ type: "reasoning.text", text: piece }] }),
    calls: calls.cut(),
    close: withUsageIn(),
    usage: usageForms.openai,
  },
  {
    provider: "LiteLLM",
    source: `${openllmetry}/opentelemetry-instrumentation-openai/tests/traces/cassettes/test_chat/test_chat_streaming.yaml`,
    chunk: (choices, usage) => ({ ...head, choices, ...orNull(usage) }),
    text: (content) => ({ role: "assistant", content }),
    calls: calls.cut(),
    close: withUsageIn({ content: "", function_call: null, refusal: null, role: null, tool_calls: null }),
    usage: usageForms.deepseek,
  },
  {
    provider: "LiteLLM, Anthropic",
    source: "https://docs.litellm.ai/docs/reasoning_content",
    chunk: (choices, usage) => ({
      id: "chatcmpl-1",
      created: 1,
      model: "m",
      object: "chat.completion.chunk",
      choices,
      ...reported(usage),
    }),
    choice: (delta, reason) =>
      reason === null ? { index: 0, delta } : { finish_reason: reason, index: 0, delta },
    thought: (piece) => ({
      reasoning_content: piece,
      thinking_blocks: [{ type: "thinking", thinking: piece, signature: null }],
      provider_specific_fields: { thinking_blocks: [] },
      role: "assistant",
      content: "",
    }),
    calls: calls.fromOne,
    usage: usageForms.anthropic,
  },
  {
    provider: "a gateway with the counts of Anthropic",
    source: "https://docs.claude.com/en/api/messages-streaming",
    chunk: (choices, usage) => ({ ...head, choices, ...reported(usage) }),
    calls: calls.repeated,
    reasons: { stop: "end_turn", tool_calls: "tool_use", length: "max_tokens" },
    usage: usageForms.inputAndOutput,
  },
  {
    provider: "Ollama",
    source: `${ruby}/chat_function_calling_ollama_qwen3_can_use_tools_with_multi-turn_streaming_conversations.yml`,
    chunk: (choices, usage) => ({ ...head, system_fingerprint: "fp_ollama", choices, ...reported(usage) }),
    thought: (piece) => ({ role: "assistant", content: "", reasoning: piece }),
    text: assistant,
    calls: calls.whole({ role: "assistant", content: "" }),
    usage: usageForms.plain,
  },
  {
    provider: "Ollama cloud",
    source: `${ruby}/chat_function_calling_ollama_cloud_gpt-oss_120b_can_use_tools_with_multi-turn_streaming_conversations.yml`,
    chunk: (choices, usage) => ({ ...head, system_fingerprint: "fp_ollama", choices, ...reported(usage) }),
    thought: (piece) => ({ content: "", reasoning: piece }),
    calls: calls.wholeTogether,
    close: (form, reason) => [
      form.chunk([{ index: 0, delta: { content: "" }, finish_reason: null }]),
      ...withUsageAfter(form, reason),
    ],
    usage: usageForms.plain,
  },
  {
    provider: "Ollama, older",
    source: "https://github.com/ollama/ollama/blob/main/docs/openai.md",
    chunk: (choices) => ({ ...head, system_fingerprint: "fp_ollama", choices }),
    text: assistant,
    calls: calls.zeroIndex,
    reasons: { tool_calls: "stop" },
  },
  {
    provider: "LM Studio",
    source: "https://github.com/lmstudio-ai/lmstudio-bug-tracker/issues/649",
    chunk: (choices, usage) => ({ ...head, system_fingerprint: "m", choices, ...reported(usage) }),
    choice: (delta, reason) => ({ index: 0, delta, logprobs: null, finish_reason: reason }),
    text: assistant,
    thought: (piece) => ({ role: "assistant", reasoning_content: piece }),
    calls: calls.emptyNames,
    usage: usageForms.plain,
  },
  {
    ...llamacpp,
    provider: "llama.cpp",
    calls: calls.cut(),
    close: (form, reason) => [
      form.chunk([{ finish_reason: reason, index: 0, delta: {} }]),
      { ...form.chunk([], usageForms.cachedOnly.counts), timings: usageForms.llamacpp.counts },
    ],
    usage: usageForms.cachedOnly,
  },
  {
    ...llamacpp,
    provider: "llama.cpp, timings alone",
    calls: calls.cutFromStart,
    close: (form, reason) => [
      {
        ...form.chunk([{ finish_reason: reason, index: 0, delta: {} }]),
        timings: usageForms.llamacpp.counts,
      },
    ],
    usage: usageForms.llamacpp,
  },
  {
    ...llamacpp,
    provider: "llama.cpp, progress first",
    source: "https://github.com/ggml-org/llama.cpp/pull/15827",
    before: [
      {
        choices: [{ finish_reason: null, index: 0, delta: { role: "assistant", content: null } }],
        prompt_progress: { total: 237, cache: 0, processed: 128, time_ms: 181 },
      },
    ],
    calls: calls.oneByOne,
    usage: usageForms.plain,
  },
  {
    provider: "vLLM",
    source: "https://github.com/letta-ai/letta/issues/2032",
    chunk: (choices, usage) => ({ ...head, choices, ...reported(usage) }),
    choice: (delta, reason) => ({
      index: 0,
      delta,
      logprobs: null,
      finish_reason: reason,
      ...(reason !== null && { stop_reason: null }),
    }),
    open: [{ role: "assistant", content: "" }],
    thought: (piece) => ({ reasoning_content: piece, reasoning: piece }),
    calls: calls.oneByOne,
    usage: usageForms.nullDetails,
  },
  {
    provider: "vLLM, usage in each chunk",
    source: "https://docs.vllm.ai/en/stable/serving/openai_compatible_server.html",
    chunk: (choices, usage) => ({ ...head, choices, ...reported(usage) }),
    open: [{ role: "assistant", content: "" }],
    thought: (piece) => ({ reasoning: piece }),
    calls: calls.cut(),
    countsAlways: true,
    usage: usageForms.plainInAnotherOrder,
  },
  {
    provider: "SGLang",
    source: "https://docs.sglang.ai/basic_usage/openai_api_completions.html",
    chunk: (choices, usage) => ({ ...head, choices, ...orNull(usage) }),
    choice: (delta, reason) => ({
      index: 0,
      delta: { role: null, content: null, reasoning_content: null, tool_calls: null, ...delta },
      logprobs: null,
      finish_reason: reason,
      matched_stop: reason === null ? null : 2,
    }),
    open: [{ role: "assistant", content: "" }],
    thought: (piece) => ({ reasoning_content: piece }),
    calls: calls.emptyWithoutInput,
    usage: usageForms.sglang,
  },
  {
    provider: "TGI",
    source: "https://github.com/huggingface/text-generation-inference/issues/2794",
    event: (json) => `data:${JSON.stringify(json)}\n\n`,
    chunk: (choices, usage) => ({
      object: "chat.completion.chunk",
      id: "",
      created: 1,
      model: "m",
      system_fingerprint: "3.3-sha",
      choices,
      ...orNull(usage),
    }),
    choice: (delta, reason) => ({ index: 0, delta, logprobs: null, finish_reason: reason }),
    text: assistant,
    calls: calls.objects,
    reasons: { stop: "eos_token", tool_calls: "eos_token" },
    usage: usageForms.plain,
  },
  {
    provider: "LocalAI",
    source: "https://localai.io/features/openai-functions/",
    chunk: (choices, usage) => ({
      created: 1,
      object: "chat.completion.chunk",
      id: "1",
      model: "m",
      choices,
      usage: usage ?? { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 },
    }),
    choice: (delta, reason) => ({ index: 0, finish_reason: reason ?? "", delta }),
    open: [{ role: "assistant", content: "" }],
    calls: calls.wholeTogether,
    close: withUsageIn({ content: "" }),
    usage: usageForms.plain,
  },
  {
    provider: "koboldcpp",
    source: "https://github.com/LostRuins/koboldcpp/wiki",
    event: (json) => `event: message\ndata: ${JSON.stringify(json)}\n\n`,
    chunk: (choices) => ({
      id: "koboldcpp",
      object: "chat.completion.chunk",
      created: 1,
      model: "m",
      choices,
    }),
    text: assistant,
    calls: calls.wholeTogether,
    reasons: { tool_calls: "tool_calls" },
  },
  {
    provider: "GPUStack",
    source: `${ruby}/chat_streaming_responses_gpustack_qwen3_supports_streaming_responses.yml`,
    chunk: (choices, usage) => ({
      choices,
      created: 1,
      id: "chatcmpl-1",
      model: "m",
      object: "chat.completion.chunk",
      ...orNull(usage),
    }),
    choice: (delta, reason) => ({ delta, finish_reason: reason, index: 0 }),
    open: [{ reasoning_content: "" }],
    thought: (piece) => ({ reasoning_content: piece }),
    calls: calls.cut(),
    close: withUsageIn({ content: "" }),
    done: false,
    usage: usageForms.openai,
  },
  {
    provider: "a server that reports counts as texts",
    source: "https://github.com/BerriAI/litellm/issues/4771",
    chunk: (choices, usage) => ({ ...head, choices, ...reported(usage) }),
    calls: calls.withoutIds,
    usage: usageForms.texts,
  },
  {
    provider: "a server without ids and indexes",
    source: "https://github.com/microclaw/microclaw/pull/230",
    chunk: (choices, usage) => ({ choices, ...reported(usage) }),
    calls: calls.zeroIndexWithoutIds,
    usage: usageForms.plain,
  },
  {
    provider: "a server that ends without a reason",
    source: `${pydantic}/test_snowflake/test_snowflake_model_streaming.yaml`,
    chunk: (choices, usage) => ({ ...head, choices, ...reported(usage), error: "" }),
    calls: calls.togetherWithoutIndex,
    reasons: { stop: "", tool_calls: null, length: null },
    usage: usageForms.plain,
  },
  {
    provider: "a proxy with a byte order mark, CRLF, pings and pretty JSON",
    source: "https://html.spec.whatwg.org/multipage/server-sent-events.html#parsing-an-event-stream",
    before: ["\ufeff: connected\n\n", "retry: 3000\n\n", "event: ping\ndata: {}\n\n"],
    between: ": ping\n\n",
    event: (json) =>
      `${JSON.stringify(json, null, 2)
        .split("\n")
        .map((line) => `data: ${line}\n`)
        .join("")}id: 7\n\n`,
    lineEnd: "\r\n",
    chunk: (choices, usage) => ({ ...head, choices, ...reported(usage) }),
    thought: (piece) => ({ reasoning_content: piece }),
    calls: calls.cut(),
    usage: usageForms.plain,
  },
  {
    provider: "a proxy with carriage returns",
    source: "https://html.spec.whatwg.org/multipage/server-sent-events.html#parsing-an-event-stream",
    lineEnd: "\r",
    chunk: (choices, usage) => ({ ...head, choices, ...reported(usage) }),
    thought: (piece) => ({ reasoning_content: piece }),
    calls: calls.cut(),
    usage: usageForms.plain,
  },
];
