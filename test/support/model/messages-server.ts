import type { IncomingHttpHeaders } from "node:http";
import { createBlock, contentText } from "./chat-server.ts";
import { isObject, toList, toObject, toText, type JsonObject } from "../json.ts";
import { declarationViolations, hasLoneSurrogate } from "./model-checks.ts";
import { MarkedCache, type PromptBlock } from "./prompt-cache.ts";
import type { Usage } from "./reply.ts";
import { createSeal } from "./seal.ts";
import type { AnswerWriter, RequestView, ServedEvent, ServedWire } from "./served-wire.ts";

/** Anthropic's Messages API (https://platform.claude.com/docs/en/api/messages/create). */
export function serveMessages(): ServedWire {
  const cache = new MarkedCache();
  let answers = 0;
  return {
    api: "messages",
    path: "/messages",
    callPrefix: "toolu",
    view: viewMessages,
    violations: (body, headers) => [
      ...headerViolations(headers),
      ...frameViolations(body),
      ...thinkingViolations(body),
      ...messagesViolations(toList(body.messages).map(toObject)),
      ...markViolations(body),
      ...toolViolations(body),
      ...(hasLoneSurrogate(body.messages) ? ["The messages contain half of a surrogate pair."] : []),
    ],
    write: (model, usage) => writeMessages(model, `msg_${++answers}`, usage),
    bill: (body) => cache.take(blocksOf(body)),
  };
}

const contentOf = ({ content }: JsonObject): JsonObject[] =>
  typeof content === "string" ? [{ type: "text", text: content }] : toList(content).map(toObject);

const systemBlocks = ({ system }: JsonObject): JsonObject[] => contentOf({ content: system ?? [] });

function viewMessages(body: JsonObject): RequestView {
  const messages = toList(body.messages).map(toObject);
  const users = messages.filter(({ role }) => role === "user");
  const texts = (message: JsonObject) => contentOf(message).filter(({ type }) => type === "text");
  const last = messages.at(-1);
  return {
    messages,
    system: systemBlocks(body)
      .map(({ text }) => toText(text) ?? "")
      .join("\n"),
    userText: contentText(texts(users.findLast((message) => texts(message).length > 0) ?? {})),
    toolNames: toList(body.tools).map((tool) => String(toObject(tool).name)),
    toolResults: (last === undefined ? [] : contentOf(last))
      .filter(({ type }) => type === "tool_result")
      .map(({ content }) => contentText(content)),
  };
}

/** The prompt in the order in which it is cached. */
function blocksOf(body: JsonObject): PromptBlock[] {
  const messages = toList(body.messages).map(toObject);
  return [
    ...toList(body.tools).map(toObject).map(createBlock),
    ...systemBlocks(body).map(createBlock),
    ...messages.flatMap((message) =>
      contentOf(message).map((block) => {
        const { text, isMarked } = createBlock(block);
        return { text: `${String(message.role)}: ${text}`, isMarked };
      }),
    ),
  ];
}

function headerViolations(headers: IncomingHttpHeaders): string[] {
  const hasKey = toText(headers["x-api-key"]) || /^Bearer \S+$/.test(headers.authorization ?? "");
  return [
    ...(hasKey ? [] : ["The request has no key in `x-api-key`."]),
    ...(headers["anthropic-version"] === "2023-06-01" ? [] : ["The request has no `anthropic-version`."]),
  ];
}

const fields = new Set(
  [
    "cache_control container context_management inference_geo max_tokens mcp_servers messages metadata model",
    "output_config service_tier speed stop_sequences stream system temperature thinking tool_choice tools top_k top_p",
  ]
    .join(" ")
    .split(" "),
);

function frameViolations(body: JsonObject): string[] {
  const { max_tokens: most, temperature } = body;
  return [
    ...Object.keys(body)
      .filter((name) => !fields.has(name))
      .map((name) => `${name}: Extra inputs are not permitted`),
    ...(toText(body.model) ? [] : ["model: Field required"]),
    ...(body.stream === true ? [] : ["The request does not ask for a stream."]),
    ...(typeof most === "number" && most > 0 ? [] : ["max_tokens: Field required"]),
    ...(typeof temperature === "number" && (temperature < 0 || temperature > 1)
      ? ["temperature: must be between 0 and 1"]
      : []),
    ...systemBlocks(body).flatMap((block) => blockViolations(block, "system")),
  ];
}

const minThinkingTokens = 1_024;
const minThinkingTopP = 0.95;

function thinkingViolations(body: JsonObject): string[] {
  const { type = "disabled", budget_tokens: budget, ...rest } = toObject(body.thinking);
  if (type === "disabled") return [];
  const { temperature, top_p: topP, top_k: topK, max_tokens: most } = body;
  const { type: choice = "auto" } = toObject(body.tool_choice);
  const isManual = type === "enabled";
  return [
    ...(isManual || type === "adaptive" ? [] : [`thinking.type: ${String(type)} is not known`]),
    ...Object.keys(rest)
      .filter((name) => name !== "display")
      .map((name) => `thinking.${name}: Extra inputs are not permitted`),
    ...(isManual && !(typeof budget === "number" && budget >= minThinkingTokens)
      ? ["thinking.enabled.budget_tokens: must be at least 1024"]
      : []),
    ...(isManual && typeof budget === "number" && typeof most === "number" && budget >= most
      ? ["`max_tokens` must be greater than `thinking.budget_tokens`"]
      : []),
    ...(temperature !== undefined && temperature !== 1
      ? ["`temperature` may only be set to 1 when thinking is enabled"]
      : []),
    ...(typeof topP === "number" && topP < minThinkingTopP
      ? ["`top_p` must be greater than or equal to 0.95 when thinking is enabled"]
      : []),
    ...(topK === undefined ? [] : ["`top_k` must be unset when thinking is enabled"]),
    ...(choice === "auto" || choice === "none"
      ? []
      : ["Thinking may not be enabled when tool_choice forces tool use."]),
    ...(isManual ? turnViolations(toList(body.messages).map(toObject)) : []),
  ];
}

/** With a thinking budget, an answer that continues must begin with its thoughts. */
function turnViolations(messages: readonly JsonObject[]): string[] {
  const last = messages.findLast(({ role }) => role === "assistant");
  const isGoingOn = contentOf(messages.at(-1) ?? {}).some(({ type }) => type === "tool_result");
  if (last === undefined || !isGoingOn) return [];
  const [first] = contentOf(last);
  return first?.type === "thinking" || first?.type === "redacted_thinking"
    ? []
    : [`Expected \`thinking\` or \`redacted_thinking\`, but found \`${String(first?.type)}\`.`];
}

/** The permitted fields of a block, by its type. */
const blockFields: Readonly<Record<string, readonly string[]>> = {
  text: ["type", "text", "cache_control", "citations"],
  image: ["type", "source", "cache_control"],
  document: ["type", "source", "title", "context", "citations", "cache_control"],
  thinking: ["type", "thinking", "signature"],
  redacted_thinking: ["type", "data"],
  tool_use: ["type", "id", "name", "input", "cache_control", "caller"],
  tool_result: ["type", "tool_use_id", "content", "is_error", "cache_control"],
};
const blocksOfRoles: Readonly<Record<string, readonly string[]>> = {
  system: ["text"],
  user: ["text", "image", "document", "tool_result"],
  assistant: ["text", "thinking", "redacted_thinking", "tool_use"],
};

function messagesViolations(messages: readonly JsonObject[]): string[] {
  return [
    ...(messages.length === 0 ? ["messages: at least one message is required"] : []),
    ...(messages[0] !== undefined && messages[0].role !== "user"
      ? ["The first message is not the user's."]
      : []),
    ...(messages.at(-1)?.role === "assistant" ? ["The last message is the assistant's."] : []),
    ...messages.flatMap((message) => {
      const { role } = message;
      if (role !== "user" && role !== "assistant") return [`messages: Unexpected role "${String(role)}"`];
      const blocks = contentOf(message);
      return [
        ...(blocks.length === 0 ? ["messages: all messages must have non-empty content"] : []),
        ...Object.keys(message)
          .filter((name) => name !== "role" && name !== "content")
          .map((name) => `messages.${name}: Extra inputs are not permitted`),
        ...blocks.flatMap((block) => blockViolations(block, role)),
      ];
    }),
    ...pairViolations(messages),
  ];
}

const idForm = /^[a-zA-Z0-9_-]+$/;

function blockViolations(block: JsonObject, role: string): string[] {
  const type = String(block.type);
  const known = blockFields[type];
  if (known === undefined || blocksOfRoles[role]?.includes(type) !== true)
    return [`A block of the type ${type} is not permitted for the role ${role}.`];
  return [
    ...Object.keys(block)
      .filter((name) => !known.includes(name))
      .map((name) => `${type}.${name}: Extra inputs are not permitted`),
    ...(type === "text" && !toText(block.text)?.trim()
      ? ["text content blocks must contain non-whitespace text"]
      : []),
    ...(type === "thinking" && block.signature !== createSeal(String(block.thinking))
      ? ["Invalid `signature` in `thinking` block"]
      : []),
    ...(type === "tool_use" && !isObject(block.input) ? ["tool_use.input: Input should be an object"] : []),
    ...(type === "tool_use" && !idForm.test(String(block.id))
      ? ["tool_use.id: String should match pattern"]
      : []),
    ...(type === "tool_result" ? resultViolations(block) : []),
  ];
}

function resultViolations({ content }: JsonObject): string[] {
  if (content === undefined || typeof content === "string") return [];
  return toList(content)
    .map(toObject)
    .flatMap((part) =>
      part.type === "tool_result" ? ["tool_result in tool_result"] : blockViolations(part, "user"),
    );
}

/** The next message begins with the result of each call, and contains no other results. */
function pairViolations(messages: readonly JsonObject[]): string[] {
  const problems: string[] = [];
  const seen = new Set<string>();
  for (const [at, message] of messages.entries()) {
    const calls = idsOf(message, "tool_use", "id");
    for (const id of calls) {
      if (seen.has(id)) problems.push(`\`tool_use\` ids must be unique, but ${id} is used twice.`);
      seen.add(id);
    }
    const next = messages[at + 1];
    const results = next === undefined ? [] : idsOf(next, "tool_result", "tool_use_id");
    for (const id of calls.filter((one) => !results.includes(one)))
      problems.push(`\`tool_use\` ids were found without \`tool_result\` blocks immediately after: ${id}.`);
    const before = messages[at - 1];
    const requested = before === undefined ? [] : idsOf(before, "tool_use", "id");
    const answers = idsOf(message, "tool_result", "tool_use_id");
    for (const [index, id] of answers.entries()) {
      if (!requested.includes(id))
        problems.push(`unexpected \`tool_use_id\` found in \`tool_result\` blocks: ${id}.`);
      if (answers.indexOf(id) !== index) problems.push(`each tool_use must have a single result: ${id}.`);
    }
    const blocks = contentOf(message);
    const lastResult = blocks.findLastIndex(({ type }) => type === "tool_result");
    if (blocks.slice(0, lastResult + 1).some(({ type }) => type !== "tool_result"))
      problems.push("Something comes before a `tool_result` block of its message.");
    problems.push(...thoughtOrder(blocks));
  }
  return problems;
}

/** Thoughts precede the text and the calls that follow from them. */
const thoughtOrder = (blocks: readonly JsonObject[]): string[] =>
  String(blocks.at(-1)?.type).endsWith("thinking") ? ["The final block of a message is `thinking`."] : [];

const idsOf = (message: JsonObject, type: string, field: string): string[] =>
  contentOf(message)
    .filter((block) => block.type === type)
    .map((block) => String(block[field]));

const marksLimit = 4;

function markViolations(body: JsonObject): string[] {
  const results = toList(body.messages)
    .map(toObject)
    .flatMap(contentOf)
    .flatMap((block) => [block, ...(block.type === "tool_result" ? contentOf(block) : [])]);
  const blocks = [...toList(body.tools).map(toObject), ...systemBlocks(body), ...results];
  const marks = blocks.flatMap(({ cache_control: mark }) =>
    mark === undefined || mark === null ? [] : [mark],
  );
  return [
    ...(marks.length > marksLimit
      ? [`A maximum of 4 blocks with cache_control may be provided. Found ${marks.length}.`]
      : []),
    ...marks
      .filter((mark) => toObject(mark).type !== "ephemeral")
      .map((mark) => `cache_control: ${JSON.stringify(mark)} is not known`),
  ];
}

const toolFields = new Set(
  "name description input_schema cache_control type strict eager_input_streaming defer_loading input_examples allowed_callers".split(
    " ",
  ),
);

function toolViolations(body: JsonObject): string[] {
  if (body.tools === undefined)
    return body.tool_choice === undefined ? [] : ["A tool_choice comes without tools."];
  const tools = toList(body.tools).map(toObject);
  return [
    ...tools.flatMap((tool) =>
      Object.keys(tool)
        .filter((name) => !toolFields.has(name))
        .map((name) => `tools.${name}: Extra inputs are not permitted`),
    ),
    ...declarationViolations(tools.map((tool) => ({ ...tool, schema: tool.input_schema }))),
  ];
}

interface OpenBlock {
  readonly kind: "thinking" | "text" | "call";
  readonly index: number;
  text: string;
}

function writeMessages(model: string, id: string, first: Usage): AnswerWriter {
  const calls = new Map<number, OpenBlock>();
  let isBegun = false;
  let open: OpenBlock | undefined;
  let count = 0;

  const event = (type: string, more: JsonObject): ServedEvent => ({ name: type, data: { type, ...more } });
  const begin = (): ServedEvent[] => {
    if (isBegun) return [];
    isBegun = true;
    const message = {
      model,
      id,
      type: "message",
      role: "assistant",
      content: [],
      stop_reason: null,
      stop_sequence: null,
      usage: { ...usageOnWire(first), output_tokens: 1 },
    };
    return [event("message_start", { message }), event("ping", {})];
  };
  const start = (kind: OpenBlock["kind"], content_block: JsonObject): [OpenBlock, ServedEvent] => {
    const block: OpenBlock = { kind, index: count++, text: "" };
    return [block, event("content_block_start", { index: block.index, content_block })];
  };
  const delta = (index: number, inner: JsonObject) => event("content_block_delta", { index, delta: inner });
  const stop = ({ index, kind, text }: OpenBlock): ServedEvent[] => [
    ...(kind === "thinking" ? [delta(index, { type: "signature_delta", signature: createSeal(text) })] : []),
    event("content_block_stop", { index }),
  ];
  const closeAll = (): ServedEvent[] => {
    const blocks = [...(open === undefined ? [] : [open]), ...calls.values()];
    open = undefined;
    calls.clear();
    return blocks.flatMap(stop);
  };
  const write = (kind: "thinking" | "text", text: string): ServedEvent[] => {
    const before: ServedEvent[] = [];
    let block = open;
    if (block?.kind !== kind) {
      before.push(...begin(), ...closeAll());
      const [fresh, started] = start(
        kind,
        kind === "text" ? { type: kind, text: "" } : { type: kind, thinking: "", signature: "" },
      );
      block = fresh;
      open = fresh;
      before.push(started);
    }
    block.text += text;
    const inner = kind === "text" ? { type: "text_delta", text } : { type: "thinking_delta", thinking: text };
    return [...before, delta(block.index, inner)];
  };
  return {
    text: (text) => write("text", text),
    reasoning: (text) => write("thinking", text),
    call(index, piece, isStarted) {
      const known = calls.get(index);
      const inner = { type: "input_json_delta", partial_json: piece };
      if (known !== undefined) return [delta(known.index, inner)];
      const before = [...begin(), ...(open === undefined ? [] : stop(open))];
      open = undefined;
      const [block, started] = start("call", {
        type: "tool_use",
        id: isStarted?.id,
        name: isStarted?.name,
        input: {},
      });
      calls.set(index, block);
      return [...before, started, delta(block.index, inner)];
    },
    end(reason, usage) {
      if (reason === undefined) return [];
      return [
        ...begin(),
        ...closeAll(),
        event("message_delta", {
          delta: { stop_reason: stopReasons[reason] ?? reason, stop_sequence: null },
          usage: usageOnWire(usage),
        }),
        event("message_stop", {}),
      ];
    },
    done: "",
  };
}

const stopReasons: Readonly<Record<string, string>> = {
  stop: "end_turn",
  length: "max_tokens",
  tool_calls: "tool_use",
  content_filter: "refusal",
};

function usageOnWire({
  promptTokens,
  completionTokens,
  cachedTokens = 0,
  writtenTokens = 0,
}: Usage): JsonObject {
  return {
    input_tokens: promptTokens - cachedTokens - writtenTokens,
    cache_creation_input_tokens: writtenTokens,
    cache_read_input_tokens: cachedTokens,
    output_tokens: completionTokens,
  };
}
