import { isRecord } from "../../base/text/record.ts";
import type { EffortStyle, Quirks } from "../quirks.ts";

type Json = Record<string, unknown>;

/** A request's body as the provider takes it. */
export function adaptBody(body: Json, quirks: Quirks): Json {
  const { max_tokens: limit, reasoning_effort: chosen, temperature, top_p: topP, ...rest } = body;
  const hasTools = Array.isArray(rest.tools) && rest.tools.length > 0;
  const effort = chosen ?? (hasTools ? quirks.effortWithTools : undefined);
  return {
    ...rest,
    ...(limit !== undefined && { [quirks.maxTokensField]: limit }),
    ...samplersOf(temperature, topP, quirks),
    ...(effort !== undefined && effortOf(effort, quirks.effort)),
    ...(hasTools && quirks.asksForParallelCalls && { parallel_tool_calls: true, ...pickParallel(rest) }),
  };
}

/** A request's messages as the provider takes them. */
export function adaptMessages(messages: readonly unknown[], quirks: Quirks): readonly unknown[] {
  const opened = withOpening(messages);
  const answered = quirks.answersTools ? answerTools(opened) : opened;
  return quirks.marksCache ? markCache(answered) : answered;
}

/** Stands in for a first question that was lost on disk: providers refuse a conversation that begins with an answer. */
function withOpening(messages: readonly unknown[]): readonly unknown[] {
  const first = messages.findIndex((message) => roleOf(message) !== "system");
  if (first < 0 || roleOf(messages[first]) === "user") return messages;
  return messages.toSpliced(first, 0, { role: "user", content: lostOpening });
}

const lostOpening = "[The message that stood here could not be read any more.]";

/** Between a tool's result and a user message stands the word of the assistant that some templates want there. */
function answerTools(messages: readonly unknown[]): unknown[] {
  return messages.flatMap((message, index) => {
    const isBehindTool = roleOf(message) === "user" && roleOf(messages[index - 1]) === "tool";
    return isBehindTool ? [{ role: "assistant", content: "Done." }, message] : [message];
  });
}

const roleOf = (message: unknown): unknown => (isRecord(message) ? message.role : undefined);

/** What a person set by hand stands. */
const pickParallel = ({ parallel_tool_calls: set }: Json): Json =>
  set === undefined ? {} : { parallel_tool_calls: set };

function samplersOf(temperature: unknown, topP: unknown, { samplers }: Quirks): Json {
  if (samplers === "none") return {};
  const first = temperature === undefined ? {} : { temperature };
  if (topP === undefined || (samplers === "one" && temperature !== undefined)) return first;
  return { ...first, top_p: topP };
}

function effortOf(effort: unknown, style: EffortStyle): Json {
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

/**
 * Marks the system prompt and the last two messages that have a text to mark, so that the next call finds all before
 * them in the cache. Providers take four marks at most.
 */
function markCache(messages: readonly unknown[]): unknown[] {
  const markable = messages.flatMap((message, index) => (lastText(message) === undefined ? [] : [index]));
  const marked = new Set([...markable.slice(0, 1), ...markable.slice(-2)]);
  return messages.map((message, index) =>
    marked.has(index) && isRecord(message) ? withCacheMark(message) : message,
  );
}

/** The part of a message that can bear a mark: a text, or the last of its parts. */
function lastText(message: unknown): unknown {
  const content = isRecord(message) ? message.content : undefined;
  if (typeof content === "string") return content === "" ? undefined : content;
  return Array.isArray(content) ? content.at(-1) : undefined;
}

function withCacheMark(message: Json): Json {
  const { content } = message;
  const parts = typeof content === "string" && content !== "" ? [{ type: "text", text: content }] : content;
  if (!Array.isArray(parts)) return message;
  const last: unknown = parts.at(-1);
  if (!isRecord(last)) return message;
  return { ...message, content: [...parts.slice(0, -1), { ...last, cache_control: { type: "ephemeral" } }] };
}
