import { recordsIn } from "../../base/text/record.ts";
import type { EffortStyle, Quirks } from "../quirks.ts";
import { cacheMarkIndexes } from "./cache-marks.ts";

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
function markCache(messages: unknown): Json[] {
  const sent = recordsIn(messages);
  const contents = sent.map(({ content }) => toParts(content));
  const roles = sent.map(({ role }) => role);
  const marked = cacheMarkIndexes(roles, (index) => contents[index]?.length !== 0);
  return sent.map((message, index) => {
    const parts = contents[index] ?? [];
    const last = { ...parts.at(-1), cache_control: { type: "ephemeral" } };
    return marked.has(index) ? { ...message, content: [...parts.slice(0, -1), last] } : message;
  });
}

function toParts(content: unknown): Json[] {
  if (typeof content === "string") return content === "" ? [] : [{ type: "text", text: content }];
  return recordsIn(content);
}
