import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { isRecord } from "../../base/text/record.ts";
import type { EffortStyle, Quirks } from "../quirks.ts";
import { type Adapt, cacheMarkIndexes, type CreateModel } from "./wire.ts";

export { Reader } from "./chat-reader.ts";

/** The provider name for options passed through the SDK. */
const sdkName = "fairlead";

/** OpenAI chat completions, in the dialects of all vendors. */
export const createModel: CreateModel = ({ endpoint, quirks, fetch, isRefused }) =>
  createOpenAICompatible({
    name: sdkName,
    baseURL: endpoint.baseURL,
    ...(endpoint.apiKey !== undefined && { apiKey: endpoint.apiKey }),
    headers: { ...endpoint.headers },
    includeUsage: (endpoint.asksForUsage ?? true) && quirks.asksForUsage,
    fetch,
    transformRequestBody: (body) => {
      const messages: readonly unknown[] = Array.isArray(body.messages) ? body.messages : [];
      const marksCache = quirks.marksCache && !isRefused("cache");
      return { ...adaptBody(body, quirks), messages: adaptMessages(messages, quirks, marksCache) };
    },
  }).chatModel(endpoint.modelId);

export const adapt: Adapt = (params, { quirks, cacheKey, isRefused, options }) => {
  const isKeyed = quirks.takesCacheKey && cacheKey !== undefined && !isRefused("cache-key");
  const sent = { ...(isKeyed && { prompt_cache_key: cacheKey }), ...options };
  // Without options the SDK loads no schema to validate them.
  return Object.keys(sent).length === 0 ? params : { ...params, providerOptions: { [sdkName]: sent } };
};

type Json = Record<string, unknown>;

/** Adapts the body of a request to the provider. */
export function adaptBody(body: Json, quirks: Quirks): Json {
  const { max_tokens: limit, reasoning_effort: chosen, temperature, top_p: topP, ...rest } = body;
  const hasTools = Array.isArray(rest.tools) && rest.tools.length > 0;
  const effort = chosen ?? (hasTools ? quirks.effortWithTools : undefined);
  return {
    ...rest,
    ...(limit !== undefined && { [quirks.maxTokensField]: limit }),
    ...pickSamplers(temperature, topP, quirks),
    ...(effort !== undefined && toEffortFields(effort, quirks.effort)),
    ...(hasTools && quirks.asksForParallelCalls && { parallel_tool_calls: true, ...pickParallel(rest) }),
  };
}

/** Adapts the messages of a request to the provider. */
export function adaptMessages(
  messages: readonly unknown[],
  quirks: Quirks,
  marksCache = quirks.marksCache,
): readonly unknown[] {
  const opened = ensureUserMessageFirst(messages);
  const answered = quirks.answersTools ? insertAssistantMessages(opened) : opened;
  return marksCache ? markCache(answered) : answered;
}

/** Adds a user message if the first one was lost on disk: providers reject conversations that begin with an answer. */
function ensureUserMessageFirst(messages: readonly unknown[]): readonly unknown[] {
  const first = messages.findIndex((message) => roleOf(message) !== "system");
  if (first < 0 || roleOf(messages[first]) === "user") return messages;
  return messages.toSpliced(first, 0, { role: "user", content: lostOpening });
}

const lostOpening = "[This message could not be read from disk.]";

/** Adds an assistant message between a tool result and a user message, as some chat templates require. */
function insertAssistantMessages(messages: readonly unknown[]): unknown[] {
  return messages.flatMap((message, index) => {
    const isBehindTool = roleOf(message) === "user" && roleOf(messages[index - 1]) === "tool";
    return isBehindTool ? [{ role: "assistant", content: "Done." }, message] : [message];
  });
}

const roleOf = (message: unknown): unknown => (isRecord(message) ? message.role : undefined);

/** Returns the configured value, which takes precedence. */
const pickParallel = ({ parallel_tool_calls: set }: Json): Json =>
  set === undefined ? {} : { parallel_tool_calls: set };

function pickSamplers(temperature: unknown, topP: unknown, { samplers }: Quirks): Json {
  if (samplers === "none") return {};
  const first = temperature === undefined ? {} : { temperature };
  if (topP === undefined || (samplers === "one" && temperature !== undefined)) return first;
  return { ...first, top_p: topP };
}

function toEffortFields(effort: unknown, style: EffortStyle): Json {
  const isOff = effort === "none";
  const thinking = { thinking: { type: isOff ? "disabled" : "enabled" } };
  switch (style) {
    case "reasoning_effort":
      return { reasoning_effort: effort };
    case "reasoning":
      return { reasoning: { effort } };
    case "thinking":
      return thinking;
    case "thinking-or-effort":
      return isOff ? thinking : { reasoning_effort: effort };
    case "enable_thinking":
      return { enable_thinking: !isOff };
  }
}

/** Adds `cache_control`, so that the next call reads the prefix from the cache. */
function markCache(messages: readonly unknown[]): unknown[] {
  const marked = cacheMarkIndexes(messages.map(roleOf), (index) => lastText(messages[index]) !== undefined);
  return messages.map((message, index) =>
    marked.has(index) && isRecord(message) ? addCacheMark(message) : message,
  );
}

/** Returns the text or the last part of a message, to which a mark can be added. */
function lastText(message: unknown): unknown {
  const content = isRecord(message) ? message.content : undefined;
  if (typeof content === "string") return content === "" ? undefined : content;
  return Array.isArray(content) ? content.at(-1) : undefined;
}

function addCacheMark(message: Json): Json {
  const { content } = message;
  const parts = typeof content === "string" && content !== "" ? [{ type: "text", text: content }] : content;
  if (!Array.isArray(parts)) return message;
  const last: unknown = parts.at(-1);
  if (!isRecord(last)) return message;
  return { ...message, content: [...parts.slice(0, -1), { ...last, cache_control: { type: "ephemeral" } }] };
}
