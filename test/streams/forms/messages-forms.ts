import type { Json } from "./chat-form.ts";
import {
  anthropicMessage,
  blocksInTurns,
  callBlock,
  type MessagesForm,
  signedAfterNothing,
  streamedBlock,
  textBlock,
  thinkingBlock,
  wholeBlock,
} from "./messages-form.ts";
import { sortFields } from "./responses-form.ts";
import { messagesUsage } from "../usage.ts";

const vercel = "https://github.com/vercel/ai/blob/main/packages/anthropic/src/__fixtures__";
const pydantic = "https://github.com/pydantic/pydantic-ai/tree/main/tests/models/cassettes/test_anthropic";
const ruby = "https://github.com/crmne/ruby_llm/tree/main/spec/fixtures/vcr_cassettes";
const openllmetry =
  "https://github.com/traceloop/openllmetry/tree/main/packages/opentelemetry-instrumentation-anthropic/tests/cassettes";

const ping = { type: "ping" };
const isFirstBlock = ({ type, index }: Json): boolean => type === "content_block_start" && index === 0;
const pingAfterFirst = (event: Json): Json | undefined => (isFirstBlock(event) ? ping : undefined);
const pingAfterAll = ({ type }: Json): Json | undefined =>
  String(type).startsWith("content_block") ? ping : undefined;
const search = { id: "srvtoolu_1", name: "web_search" };
const found: Json = {
  type: "web_search_result",
  title: 'a, "b"',
  url: "https://example.com",
  encrypted_content: "RW5jcnlwdGVk",
  page_age: null,
};
const cited: Json = {
  type: "citations_delta",
  citation: {
    type: "web_search_result_location",
    cited_text: "a, b: {c}",
    url: "https://example.com",
    title: 'a, "b"',
    encrypted_index: "SW5kZXg=",
  },
};

const anthropic = { usage: messagesUsage.anthropic, after: pingAfterFirst } as const;

/** Servers of the Messages API. */
export const messagesForms: readonly MessagesForm[] = [
  {
    ...anthropic,
    provider: "Anthropic",
    source: `${ruby}/chat_function_calling_anthropic_claude-haiku-4-5_can_use_tools_with_multi-turn_streaming_conversations.yml`,
    message: (usage) => ({ ...anthropicMessage(usage), stop_details: null, usage }),
    end: { stop_sequence: null, stop_details: null },
    thinking: thinkingBlock(),
    call: callBlock({ begun: { caller: { type: "direct" } } }),
  },
  {
    ...anthropic,
    provider: "Anthropic, 2024",
    source: `${openllmetry}/test_prompt_caching/test_anthropic_prompt_caching_stream_legacy.yaml`,
    usage: messagesUsage.outputAtEnd,
    message: (usage) => ({
      id: "msg_1",
      type: "message",
      role: "assistant",
      model: "m",
      content: [],
      stop_reason: null,
      stop_sequence: null,
      usage,
    }),
    thinking: thinkingBlock({ begun: {} }),
  },
  {
    ...anthropic,
    provider: "Anthropic, an empty thought before the signature",
    source: `${vercel}/anthropic-clear-thinking.1.chunks.txt`,
    thinking: thinkingBlock({ last: signedAfterNothing }),
    endEvent: { context_management: { applied_edits: [] } },
  },
  {
    ...anthropic,
    provider: "Anthropic, signs of life everywhere",
    source: `${vercel}/anthropic-json-other-tool.1.chunks.txt`,
    thinking: thinkingBlock(),
    after: pingAfterAll,
  },
  {
    ...anthropic,
    provider: "Anthropic, redacted thoughts",
    source: `${pydantic}/test_anthropic_model_thinking_part_redacted_stream.yaml`,
    first: [
      wholeBlock({ type: "redacted_thinking", data: "EmwKAhgBEgy=" }),
      wholeBlock({ type: "redacted_thinking", data: "EmwKAhgBEgz=" }),
    ],
    thinking: thinkingBlock(),
    after: pingAfterAll,
  },
  {
    ...anthropic,
    provider: "Anthropic, thoughts that are not shown",
    source: "https://platform.claude.com/docs/en/build-with-claude/adaptive-thinking",
    first: [(_, index) => thinkingBlock()([], index)],
  },
  {
    ...anthropic,
    provider: "Anthropic, input in fine grains",
    source: "https://platform.claude.com/docs/en/agents-and-tools/tool-use/fine-grained-tool-streaming",
    call: callBlock({
      deltas: ({ pieces }) => {
        const text = pieces.join("");
        return text === "{}" ? [] : [text.slice(0, 1), text.slice(1, -1), text.slice(-1)];
      },
    }),
    thinking: thinkingBlock(),
  },
  {
    ...anthropic,
    provider: "Anthropic, input in the block",
    source: `${vercel}/anthropic-programmatic-tool-calling.1.chunks.txt`,
    call: callBlock({
      input: ({ input }) => ({ input }),
      deltas: () => [],
      begun: { caller: { type: "code_execution_20250825", tool_id: "srvtoolu_1" } },
    }),
    end: { stop_sequence: null, container: { id: "container_1", expires_at: "2026-11-22T00:00:00Z" } },
  },
  {
    ...anthropic,
    provider: "Anthropic, a search that nobody asked for",
    source: `${vercel}/anthropic-web-search-tool.1.chunks.txt`,
    first: [
      streamedBlock(
        { type: "server_tool_use", ...search, input: {} },
        { type: "input_json_delta", partial_json: "" },
        { type: "input_json_delta", partial_json: '{"query": "a, ' },
        { type: "input_json_delta", partial_json: 'b: {c}"}' },
      ),
      wholeBlock({ type: "web_search_tool_result", tool_use_id: search.id, content: [found, found] }),
    ],
    text: textBlock({ begun: { citations: [] }, deltas: [cited] }),
    endEvent: {},
    usage: messagesUsage.iterations,
  },
  {
    ...anthropic,
    provider: "Anthropic, another model that steps in",
    source: `${vercel}/anthropic-fallback.chunks.txt`,
    first: [wholeBlock({ type: "fallback", from: { model: "m" }, to: { model: "n" } })],
    usage: messagesUsage.iterations,
  },
  {
    ...anthropic,
    provider: "Anthropic, blocks side by side",
    source: "https://platform.claude.com/docs/en/build-with-claude/streaming",
    arrange: blocksInTurns,
    thinking: thinkingBlock(),
  },
  {
    ...anthropic,
    provider: "Amazon Bedrock",
    source:
      "https://docs.aws.amazon.com/bedrock/latest/userguide/model-parameters-anthropic-claude-messages.html",
    after: () => undefined,
    stop: {
      "amazon-bedrock-invocationMetrics": {
        inputTokenCount: 100,
        outputTokenCount: 90,
        invocationLatency: 900,
        firstByteLatency: 300,
      },
    },
    thinking: thinkingBlock(),
  },
  {
    provider: "A server that counts the input at the end",
    source: `${vercel}/anthropic-message-delta-input-tokens.chunks.txt`,
    usage: messagesUsage.estimateFirst,
    order: sortFields,
    after: pingAfterFirst,
  },
  {
    provider: "A gateway that starts twice",
    source: `${vercel}/duplicate-message-start.chunks.txt`,
    usage: messagesUsage.outputAtEnd,
    starts: 2,
  },
  {
    provider: "LiteLLM",
    source: "https://github.com/BerriAI/litellm/pull/34701",
    usage: messagesUsage.inputAtEnd,
    first: [(_, index) => textBlock()([], index)],
    thinking: thinkingBlock(),
    call: callBlock({ deltas: ({ pieces }) => pieces }),
    end: {},
  },
  {
    provider: "Ollama",
    source: "https://github.com/ollama/ollama/blob/main/anthropic/anthropic.go",
    usage: messagesUsage.bare,
    message: (usage) => ({ id: "msg_1", type: "message", role: "assistant", model: "m", content: [], usage }),
    thinking: thinkingBlock({ begun: {}, last: [] }),
    call: callBlock({ deltas: ({ pieces }) => [pieces.join("")] }),
    end: {},
  },
  {
    provider: "vLLM",
    source: "https://github.com/vllm-project/vllm/blob/main/vllm/entrypoints/anthropic/serving.py",
    usage: messagesUsage.bare,
    // Fields with their usual values are left out, and the type is one of them.
    message: (usage) => ({
      id: "chatcmpl-1",
      content: [],
      model: "m",
      stop_reason: null,
      stop_sequence: null,
      usage,
    }),
    order: ({ type, message, delta, content_block, index, ...rest }) => ({
      type,
      ...(message !== undefined && { message }),
      ...(delta !== undefined && { delta }),
      ...(content_block !== undefined && { content_block }),
      ...(index !== undefined && { index }),
      ...rest,
    }),
    thinking: thinkingBlock({ begun: {} }),
    call: callBlock({ deltas: ({ pieces }) => pieces }),
    end: {},
    done: true,
  },
  {
    provider: "llama.cpp",
    source: "https://github.com/ggml-org/llama.cpp/blob/master/tools/server/server-task.cpp",
    usage: messagesUsage.outputAtEnd,
    thinking: thinkingBlock({ begun: {}, last: [{ type: "signature_delta", signature: "" }] }),
    call: callBlock({ input: () => ({}), deltas: ({ pieces }) => pieces }),
  },
  {
    ...anthropic,
    provider: "OpenRouter",
    source: "https://openrouter.ai/docs/api-reference/streaming",
    before: [": OPENROUTER PROCESSING\n\n"],
    after: (_, number) => (number % 2 === 0 ? ": OPENROUTER PROCESSING\n\n" : undefined),
    thinking: thinkingBlock(),
  },
  {
    ...anthropic,
    provider: "A proxy on Windows, without names of events",
    source: "https://html.spec.whatwg.org/multipage/server-sent-events.html#parsing-an-event-stream",
    before: [": ok\n\n", "retry: 3000\n\n"],
    after: () => ": ping\n\n",
    namesEvents: false,
    lineEnd: "\r\n",
    thinking: thinkingBlock(),
    done: true,
  },
  {
    ...anthropic,
    provider: "A proxy with carriage returns",
    source: "https://html.spec.whatwg.org/multipage/server-sent-events.html#parsing-an-event-stream",
    lineEnd: "\r",
    thinking: thinkingBlock(),
  },
];
