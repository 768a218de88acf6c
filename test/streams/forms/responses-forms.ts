import { toObject } from "../../support/json.ts";
import type { Json } from "./chat-form.ts";
import {
  callItem,
  doneOnly,
  inTurns,
  type ItemEvent,
  messageItem,
  type ResponsesForm,
  sortFields,
  summaryItem,
  thoughtItem,
  wholeItem,
} from "./responses-form.ts";
import { responsesUsage } from "../usage.ts";

const vercel = "https://github.com/vercel/ai/blob/main/packages";
const pydantic = "https://github.com/pydantic/pydantic-ai/tree/main/tests/models/cassettes";
const ruby = "https://github.com/crmne/ruby_llm/tree/main/spec/fixtures/vcr_cassettes";

const isDelta = (type: string): boolean => type.endsWith(".delta");
const padding = "aB3xYz7Q".repeat(2);

/** Random characters that hide how long a delta is. */
const padded = (type: string, number: number): Json =>
  isDelta(type) ? { obfuscation: padding.slice(0, (number * 7) % 16) } : {};

type Envelope = ResponsesForm["envelope"];
const numberSecond: Envelope = (type, fields, number) => ({ type, sequence_number: number, ...fields });
const numberLast: Envelope = (type, fields, number) => ({ type, ...fields, sequence_number: number });
const numberFirst: Envelope = (type, fields, number) => ({ sequence_number: number, type, ...fields });
const withoutNumber: Envelope = (type, fields) => ({ type, ...fields });
const alphabetical: Envelope = (type, fields, number) =>
  sortFields({ ...fields, sequence_number: number, type });

/** The fields of a response of OpenAI, of 2025 or later. */
const openaiResponse = (state: Json): Json => ({
  id: "resp_1",
  object: "response",
  created_at: 1_790_000_000,
  status: state.status,
  background: false,
  error: null,
  incomplete_details: state.incomplete_details,
  instructions: null,
  max_output_tokens: null,
  max_tool_calls: null,
  model: "m",
  output: state.output,
  parallel_tool_calls: true,
  previous_response_id: null,
  prompt_cache_key: null,
  reasoning: { effort: "medium", summary: "detailed" },
  service_tier: "auto",
  store: false,
  temperature: 1,
  text: { format: { type: "text" }, verbosity: "medium" },
  tool_choice: "auto",
  tools: [{ type: "function", name: "read", description: "a, b: {c}", parameters: {}, strict: false }],
  top_p: 1,
  truncation: "disabled",
  usage: state.usage,
  user: null,
  metadata: {},
});
const bareResponse = (state: Json): Json => ({
  id: "resp_1",
  object: "response",
  created_at: 1_790_000_000,
  model: "m",
  ...state,
});

const encrypted = { begun: { encrypted_content: "Z0FBQUE=" }, done: { encrypted_content: "Z0FBQUFCYw==" } };
const webSearch = wholeItem("ws", () => ({
  type: "web_search_call",
  status: "completed",
  action: { type: "search", query: "a, b: {c}", sources: [{ type: "url", url: "https://example.com" }] },
}));
const citation = (type: string): Json => ({
  type,
  url: "https://example.com",
  title: 'a "b"',
  start_index: 0,
  end_index: 2,
});

const openai = { envelope: numberSecond, response: openaiResponse, usage: responsesUsage.openai } as const;

/** Servers of the Responses API. */
export const responsesForms: readonly ResponsesForm[] = [
  {
    ...openai,
    provider: "OpenAI, encrypted reasoning",
    source: `${vercel}/openai/src/responses/__fixtures__/openai-reasoning-encrypted-content.1.chunks.txt`,
    envelope: (type, fields, number) => ({
      ...numberSecond(type, fields, number),
      ...padded(type, number),
    }),
    reasoning: summaryItem(encrypted),
  },
  {
    ...openai,
    provider: "OpenAI, a summary of several parts",
    source: `${pydantic}/test_openai_responses/test_openai_responses_thinking_part_iter.yaml`,
    reasoning: summaryItem({ ...encrypted, parts: 3 }),
  },
  {
    ...openai,
    provider: "OpenAI, phases",
    source: `${vercel}/openai/src/responses/__fixtures__/openai-phase.1.chunks.txt`,
    envelope: (type, fields, number) => {
      const { item_id, output_index, content_index, ...rest } = fields;
      return { type, content_index, ...rest, item_id, output_index, sequence_number: number };
    },
    message: messageItem({ item: { phase: "commentary" }, delta: () => ({}) }),
    call: callItem({ item: { namespace: null } }),
    reasoning: summaryItem(encrypted),
  },
  {
    ...openai,
    provider: "OpenAI, reasoning that says nothing, moderation",
    source: `${pydantic}/test_openai_responses/test_openai_responses_moderation_stream.yaml`,
    envelope: (type, fields, number) => ({ ...numberLast(type, fields, number), ...padded(type, number) }),
    response: (state) => ({
      ...openaiResponse(state),
      moderation: { input: { type: "moderation_result", categories: { violence: false } } },
    }),
    first: wholeItem("rs", () => ({
      type: "reasoning",
      content: [],
      encrypted_content: "Z0FBQUE=",
      summary: [],
    })),
  },
  {
    ...openai,
    provider: "OpenAI, an empty message first",
    source: "https://platform.openai.com/docs/api-reference/responses-streaming",
    first: (_, place) => messageItem()([], place),
    reasoning: summaryItem(encrypted),
  },
  {
    ...openai,
    provider: "OpenAI, a search that nobody asked for",
    source: `${vercel}/openai/src/responses/__fixtures__/openai-web-search-tool.1.chunks.txt`,
    first: webSearch,
    message: messageItem({
      afterDeltas: ({ index, id }): ItemEvent[] => [
        [
          "response.output_text.annotation.added",
          {
            item_id: id("msg"),
            output_index: index,
            content_index: 0,
            annotation_index: 0,
            annotation: citation("url_citation"),
          },
        ],
      ],
    }),
  },
  {
    ...openai,
    provider: "OpenAI, calls side by side",
    source: "https://platform.openai.com/docs/api-reference/responses-streaming",
    arrange: inTurns,
    reasoning: summaryItem(encrypted),
  },
  {
    ...openai,
    provider: "OpenAI, spring of 2025",
    source: `${pydantic}/test_openai_responses/test_openai_responses_stream.yaml`,
    envelope: withoutNumber,
    message: messageItem({ delta: () => ({}) }),
  },
  {
    ...openai,
    provider: "OpenAI, signs of life",
    source: "https://github.com/openai/openai-node/issues/1964",
    between: { type: "keepalive", sequence_number: 3 },
    reasoning: summaryItem(encrypted),
    usage: responsesUsage.withWrites,
  },
  {
    ...openai,
    provider: "Finished items only",
    source: "https://github.com/openai/codex/blob/main/codex-rs/core/tests/common/responses.rs",
    envelope: withoutNumber,
    opening: ["response.created"],
    response: (state) => ({ id: "resp_1", ...state }),
    reasoning: doneOnly(summaryItem(encrypted)),
    message: doneOnly(messageItem({ part: {} })),
    call: doneOnly(callItem()),
  },
  {
    ...openai,
    provider: "Azure OpenAI",
    source: `${vercel}/azure/src/__fixtures__/azure-reasoning-encrypted-content.1.chunks.txt`,
    envelope: (type, fields, number) => ({
      ...numberSecond(type, fields, number),
      ...padded(type, number),
    }),
    response: (state) => ({ ...openaiResponse(state), content_filters: null }),
    reasoning: summaryItem(encrypted),
  },
  {
    ...openai,
    provider: "Azure OpenAI, results of its filters",
    source: `${ruby}/chat_responses_protocol_dialects_with_azure_gpt-5-nano_streams_responses.yml`,
    envelope: numberLast,
    response: (state) => ({
      ...openaiResponse(state),
      completed_at: 1_790_000_001,
      content_filters: [
        { blocked: false, source_type: "prompt", content_filter_results: { hate: { filtered: false } } },
      ],
    }),
    first: wholeItem("rs", () => ({
      type: "reasoning",
      content: [],
      encrypted_content: "Z0FBQUE=",
      summary: [],
    })),
  },
  {
    ...openai,
    provider: "GitHub Copilot",
    source: `${vercel}/openai/src/responses/__fixtures__/github-copilot-id-rotation.1.chunks.txt`,
    envelope: (type, fields, number) => ({
      ...(type === "response.completed" && {
        copilot_usage: { token_details: [{ token_count: 19, token_type: "input" }], total_nano_aiu: 1 },
      }),
      ...alphabetical(type, fields, number),
    }),
    rotatesIds: true,
    reasoning: summaryItem({ begun: { content: [], encrypted_content: null } }),
    message: messageItem({ item: { phase: "final_answer" } }),
    usage: responsesUsage.withWrites,
  },
  {
    ...openai,
    provider: "xAI",
    source: `${vercel}/xai/src/responses/__fixtures__/xai-text-with-reasoning-streaming-store-false.1.chunks.txt`,
    envelope: numberFirst,
    response: bareResponse,
    reasoning: summaryItem({
      begun: { status: "in_progress" },
      done: { status: "completed", encrypted_content: "Z0FBQUE=" },
    }),
    usage: responsesUsage.xai,
  },
  {
    ...openai,
    provider: "xAI, a search that nobody asked for",
    source: `${vercel}/xai/src/responses/__fixtures__/xai-web-search-tool.1.chunks.txt`,
    envelope: numberFirst,
    response: bareResponse,
    first: wholeItem("ws", () => ({
      arguments: '{"query":"a, b: {c}"}',
      call_id: "",
      name: "web_search",
      type: "web_search_call",
      status: "completed",
    })),
    usage: responsesUsage.xai,
  },
  {
    ...openai,
    provider: "DeepSeek",
    source: `${pydantic}/test_deepseek_responses/test_deepseek_responses[function_tool_stream].yaml`,
    envelope: numberLast,
    reasoning: thoughtItem({
      begun: { status: "in_progress", content: [] },
      done: { status: "completed" },
      part: "response.content_part",
    }),
  },
  {
    provider: "OpenRouter",
    source: `${pydantic}/test_openai_responses/test_openai_responses_raw_cot_stream_openrouter.yaml`,
    envelope: numberLast,
    namesEvents: false,
    before: [": OPENROUTER PROCESSING\n\n"],
    between: ": OPENROUTER PROCESSING\n\n",
    response: (state) => ({ ...bareResponse(state), output_text: "", error: null }),
    reasoning: thoughtItem({ part: "response.content_part" }),
    message: messageItem({ part: { annotations: [] } }),
    // The thoughts end after the message.
    arrange: (items) => {
      const [first = [], ...others] = items;
      const isThought = toObject(first[0]?.[1].item).type === "reasoning";
      if (!isThought) return items.flat();
      const end = first.findIndex(([type]) => type.endsWith("_text.done"));
      return [...first.slice(0, end), ...others.flat(), ...first.slice(end)];
    },
    usage: responsesUsage.openrouter,
    done: true,
  },
  {
    ...openai,
    provider: "Amazon Bedrock Mantle",
    source: `${ruby}/providers_bedrock_mantle_responses_chat_streams_through_the_responses_surface.yml`,
    envelope: alphabetical,
    response: bareResponse,
    reasoning: thoughtItem({
      begun: { status: "in_progress" },
      done: { status: "completed" },
      part: "response.reasoning_part",
    }),
    message: messageItem({ contentIndex: 1 }),
  },
  {
    ...openai,
    provider: "LM Studio",
    source: `${vercel}/open-responses/src/responses/__fixtures__/lmstudio-tool-call.1.chunks.txt`,
    envelope: numberLast,
    reasoning: thoughtItem({
      begun: { status: "in_progress", content: [] },
      done: { status: "completed" },
      part: "response.content_part",
    }),
    message: messageItem({
      delta: (token) => ({
        logprobs: token === "" ? [] : [{ token, logprob: 0, bytes: [73], top_logprobs: [] }],
      }),
    }),
    call: callItem({ deltas: () => [] }),
  },
  {
    ...openai,
    provider: "Ollama",
    source: "https://github.com/ollama/ollama/blob/main/openai/responses.go",
    envelope: alphabetical,
    reasoning: summaryItem({ done: { encrypted_content: "thoughts" }, namesParts: false }),
    call: callItem({ deltas: ({ pieces }) => [pieces.join("")] }),
    saysLength: false,
  },
  {
    ...openai,
    provider: "vLLM",
    source:
      "https://github.com/vllm-project/vllm/blob/main/vllm/entrypoints/openai/responses/simple_streaming_events.py",
    envelope: alphabetical,
    reasoning: thoughtItem({
      begun: { status: "in_progress", content: null, encrypted_content: null },
      done: { status: "completed", encrypted_content: null },
      part: "response.content_part",
    }),
  },
  {
    ...openai,
    provider: "llama.cpp",
    source: "https://github.com/ggml-org/llama.cpp/blob/master/tools/server/server-task.cpp",
    envelope: (type, { output_index: _output, content_index: _content, logprobs: _logprobs, ...fields }) => ({
      type,
      ...fields,
    }),
    response: (state) => ({ id: "resp_1", object: "response", ...state }),
    reasoning: thoughtItem({
      begun: { content: [], encrypted_content: "", status: "in_progress" },
      done: { encrypted_content: "" },
    }),
    call: callItem({ hasId: false }),
    saysLength: false,
    usage: responsesUsage.bare,
  },
  {
    ...openai,
    provider: "Exa and 9Router, no usage",
    source: "https://github.com/decolua/9router/issues/705",
    envelope: numberLast,
    response: ({ status }) => ({
      id: "resp_1",
      object: "response",
      created_at: 1_790_000_000,
      status,
      background: false,
      error: null,
      model: "m",
    }),
    reasoning: summaryItem(),
    saysLength: false,
    usage: undefined,
  },
  {
    ...openai,
    provider: "OmniRoute, an event without its response first",
    source: "https://github.com/diegosouzapw/OmniRoute/issues/14330",
    before: ['data: {"type":"response.in_progress"}\n\n'],
    reasoning: summaryItem(encrypted),
  },
  {
    ...openai,
    provider: "A proxy on Windows",
    source: "https://html.spec.whatwg.org/multipage/server-sent-events.html#parsing-an-event-stream",
    namesEvents: false,
    before: [": ok\n\n", "retry: 3000\n\n"],
    between: ": ping\n\n",
    reasoning: summaryItem(encrypted),
    lineEnd: "\r\n",
    done: true,
  },
];
