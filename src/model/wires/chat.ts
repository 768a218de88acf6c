import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { isRecord } from "../../base/text/record.ts";
import type { EffortStyle, Quirks } from "../quirks.ts";
import { cacheMarkIndexes } from "../request/cache-marks.ts";
import type { Wire } from "./wire.ts";

export { Reader } from "./chat-reader.ts";

/** The provider name for options passed through the SDK. */
const sdkName = "fairlead";

/** OpenAI chat completions, in the dialects of all vendors. */
export const createModel: Wire["createModel"] = (settings, { endpoint, quirks, isRefused }) =>
  createOpenAICompatible({
    ...settings,
    name: sdkName,
    includeUsage: (endpoint.asksForUsage ?? true) && quirks.asksForUsage,
    transformRequestBody: (body) => adaptBody(body, quirks, quirks.marksCache && !isRefused("cache")),
  }).chatModel(endpoint.modelId);

export const adapt: Wire["adapt"] = (params, { quirks, cacheKey, isRefused, options }) => {
  const isKeyed = quirks.takesCacheKey && cacheKey !== undefined && !isRefused("cache-key");
  const sent = { ...(isKeyed && { prompt_cache_key: cacheKey }), ...options };
  // Without options the SDK loads no schema to validate them.
  return Object.keys(sent).length === 0 ? params : { ...params, providerOptions: { [sdkName]: sent } };
};

type Json = Record<string, unknown>;

/** Adapts the body of a request to the provider. Configured values take precedence. */
export function adaptBody(body: Json, quirks: Quirks, marksCache = quirks.marksCache): Json {
  const { max_tokens: limit, reasoning_effort: chosen, temperature, top_p: topP, ...rest } = body;
  const hasTools = Array.isArray(rest.tools) && rest.tools.length > 0;
  const effort = chosen ?? (hasTools ? quirks.effortWithTools : undefined);
  return {
    ...rest,
    ...(limit !== undefined && { [quirks.maxTokensField]: limit }),
    ...pickSamplers(temperature, topP, quirks),
    ...(effort !== undefined && effortFields[quirks.effort](effort)),
    ...(hasTools && quirks.asksForParallelCalls && { parallel_tool_calls: rest.parallel_tool_calls ?? true }),
    ...(marksCache && Array.isArray(rest.messages) && { messages: markCache(rest.messages) }),
  };
}

function pickSamplers(temperature: unknown, topP: unknown, { samplers }: Quirks): Json {
  if (samplers === "none") return {};
  const first = temperature === undefined ? {} : { temperature };
  if (topP === undefined || (samplers === "one" && temperature !== undefined)) return first;
  return { ...first, top_p: topP };
}

const effortFields: Readonly<Record<EffortStyle, (effort: unknown) => Json>> = {
  reasoning_effort: (effort) => ({ reasoning_effort: effort }),
  reasoning: (effort) => ({ reasoning: { effort } }),
  thinking: (effort) => ({ thinking: { type: effort === "none" ? "disabled" : "enabled" } }),
  "thinking-or-effort": (effort) => effortFields[effort === "none" ? "thinking" : "reasoning_effort"](effort),
  enable_thinking: (effort) => ({ enable_thinking: effort !== "none" }),
};

/** Adds `cache_control`, so that the next call reads the prefix from the cache. */
function markCache(messages: readonly unknown[]): unknown[] {
  const sent = messages.map((message) => (isRecord(message) ? message : {}));
  const contents = sent.map(({ content }) => toParts(content));
  const roles = sent.map(({ role }) => role);
  const marked = cacheMarkIndexes(roles, (index) => isRecord(contents[index]?.at(-1)));
  return sent.map((message, index) => {
    const parts = contents[index] ?? [];
    const last = parts.at(-1);
    if (!marked.has(index) || !isRecord(last)) return message;
    return {
      ...message,
      content: [...parts.slice(0, -1), { ...last, cache_control: { type: "ephemeral" } }],
    };
  });
}

function toParts(content: unknown): readonly unknown[] {
  if (typeof content === "string") return content === "" ? [] : [{ type: "text", text: content }];
  return Array.isArray(content) ? content : [];
}
