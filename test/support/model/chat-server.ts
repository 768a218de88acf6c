import { toList, toObject, toText, type JsonObject } from "../json.ts";
import { requestViolations } from "./model-checks.ts";
import { MarkedCache, PrefixCache, type PromptBlock } from "./prompt-cache.ts";
import type { Usage } from "./reply.ts";
import type { AnswerWriter, RequestView, ServedEvent, ServedWire } from "./served-wire.ts";

/** Chat completions in the format of OpenAI-compatible servers. */
export function serveChat(): ServedWire {
  const prefixes = new PrefixCache();
  const marks = new MarkedCache();
  return {
    api: "chat",
    path: "/chat/completions",
    callPrefix: "call",
    view: viewChat,
    violations: requestViolations,
    write: writeChat,
    bill: (body) => {
      const blocks = createBlocks(body);
      // A gateway forwards the marks; without any, Anthropic caches nothing.
      if (/claude/i.test(String(body.model))) return marks.take(blocks);
      return prefixes.take(blocks.map(({ text }) => text).join(""), toText(body.prompt_cache_key));
    },
  };
}

function viewChat(body: JsonObject): RequestView {
  const messages = toList(body.messages).map(toObject);
  const lastOther = messages.findLastIndex((message) => message.role !== "tool");
  const system = messages.filter(({ role }) => role === "system" || role === "developer");
  return {
    messages,
    system: system.map((message) => contentText(message.content)).join("\n"),
    userText: contentText(messages.findLast((message) => message.role === "user")?.content),
    toolNames: toList(body.tools).map((tool) => String(toObject(toObject(tool).function).name)),
    toolResults: messages.slice(lastOther + 1).map((message) => contentText(message.content)),
  };
}

/** The text of a message's content. */
export function contentText(content: unknown): string {
  if (typeof content === "string") return content;
  return toList(content)
    .map((part) => toText(toObject(part).text) ?? "")
    .join("");
}

/**
 * A gateway's blocks for a model of Anthropic: a mark may be at a message or at one of its parts. Thoughts
 * without a signature cannot be forwarded.
 */
function createBlocks(body: JsonObject): PromptBlock[] {
  const tools = toList(body.tools).map(toObject).map(createBlock);
  const messages = toList(body.messages).map(toObject);
  const isSystem = ({ role }: JsonObject) => role === "system" || role === "developer";
  const ordered = [...messages.filter(isSystem), ...messages.filter((message) => !isSystem(message))];
  return [...tools, ...ordered.flatMap(messageBlocks)];
}

function messageBlocks(message: JsonObject): PromptBlock[] {
  const { content, tool_calls: calls, cache_control: mark, reasoning_content: _unsigned, ...rest } = message;
  const parts =
    typeof content === "string" ? [{ type: "text", text: content }] : toList(content).map(toObject);
  const blocks = [...parts, ...toList(calls).map(toObject)].map((part) => {
    const { text, isMarked } = createBlock(part);
    return { text: JSON.stringify(rest) + text, isMarked };
  });
  return blocks.map((block, at) => ({
    ...block,
    isMarked: block.isMarked || (mark !== undefined && at === blocks.length - 1),
  }));
}

/** A block and its cache mark, which does not count as part of the prompt. */
export function createBlock(value: JsonObject): PromptBlock {
  const { cache_control: mark, ...rest } = value;
  return { text: JSON.stringify(rest), isMarked: mark !== undefined && mark !== null };
}

function writeChat(model: string): AnswerWriter {
  const frame = (more: JsonObject): ServedEvent[] => [
    { data: { id: "chatcmpl-1", object: "chat.completion.chunk", created: 0, model, ...more } },
  ];
  const delta = (inner: JsonObject) => frame({ choices: [{ index: 0, delta: inner, finish_reason: null }] });
  return {
    text: (content) => delta({ content }),
    reasoning: (text) => delta({ reasoning_content: text }),
    call: (index, piece, started) => delta({ tool_calls: [callDelta(index, piece, started)] }),
    end: (reason, usage) =>
      reason === undefined
        ? []
        : [
            ...frame({ choices: [{ index: 0, delta: {}, finish_reason: reason }] }),
            ...frame({ choices: [], usage: usageOnWire(usage) }),
          ],
    done: "data: [DONE]\n\n",
  };
}

function callDelta(
  index: number,
  piece: string,
  started?: { name: string; id: string | undefined },
): JsonObject {
  if (started === undefined) return { index, function: { arguments: piece } };
  const { name, id } = started;
  return { index, ...(id !== undefined && { id }), type: "function", function: { name, arguments: piece } };
}

export function usageOnWire(usage: Usage): JsonObject {
  return {
    prompt_tokens: usage.promptTokens,
    completion_tokens: usage.completionTokens,
    total_tokens: usage.promptTokens + usage.completionTokens,
    prompt_tokens_details: { cached_tokens: usage.cachedTokens ?? 0 },
    completion_tokens_details: { reasoning_tokens: usage.reasoningTokens ?? 0 },
  };
}
