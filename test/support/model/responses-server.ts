import type { IncomingHttpHeaders } from "node:http";
import { contentText } from "./chat-server.ts";
import { isObject, toList, toObject, parseJson, toText, type JsonObject } from "../json.ts";
import { declarationViolations, hasLoneSurrogate } from "./model-checks.ts";
import { PrefixCache } from "./prompt-cache.ts";
import type { Usage } from "./reply.ts";
import { encrypt, isEncrypted } from "./seal.ts";
import type { AnswerWriter, RequestView, ServedEvent, ServedWire } from "./served-wire.ts";

/**
 * OpenAI's Responses API without stored responses
 * (https://platform.openai.com/docs/api-reference/responses/create).
 */
export function serveResponses(): ServedWire {
  const cache = new PrefixCache();
  /** The reasoning item before each item of an answer, by id. */
  const reasoningBefore = new Map<string, string>();
  let items = 0;
  return {
    api: "responses",
    path: "/responses",
    callPrefix: "call",
    view: viewResponses,
    violations: (body, headers) => [
      ...headerViolations(headers),
      ...frameViolations(body),
      ...inputViolations(toList(body.input).map(toObject), reasoningBefore),
      ...toolViolations(body),
      ...(hasLoneSurrogate(body.input) ? ["The input contains half of a surrogate pair."] : []),
    ],
    write: (model) => writeResponses(model, () => ++items, reasoningBefore),
    bill: (body) => {
      const prompt = JSON.stringify([body.tools, body.instructions, body.input]);
      return cache.take(prompt, toText(body.prompt_cache_key));
    },
  };
}

function viewResponses(body: JsonObject): RequestView {
  const items = toList(body.input).map(toObject);
  const lastOther = items.findLastIndex(({ type }) => type !== "function_call_output");
  const system = items.filter(({ role }) => role === "system" || role === "developer");
  return {
    messages: items,
    system: [toText(body.instructions) ?? [], ...system.map(({ content }) => contentText(content))]
      .flat()
      .join("\n"),
    userText: contentText(items.findLast(({ role }) => role === "user")?.content),
    toolNames: toList(body.tools).map((tool) => String(toObject(tool).name)),
    toolResults: items.slice(lastOther + 1).map(({ output }) => contentText(output)),
  };
}

const headerViolations = ({ authorization = "" }: IncomingHttpHeaders): string[] =>
  /^Bearer \S+$/.test(authorization) ? [] : ["The request has no key in `authorization`."];

const fields = new Set(
  [
    "background context_management conversation include input instructions max_output_tokens max_tool_calls metadata",
    "model parallel_tool_calls previous_response_id prompt prompt_cache_key prompt_cache_retention reasoning",
    "safety_identifier service_tier store stream stream_options temperature text tool_choice tools top_logprobs top_p",
    "truncation user",
  ]
    .join(" ")
    .split(" "),
);

/** The permitted fields of an item, by its type. */
const itemFields: Readonly<Record<string, readonly string[]>> = {
  message: ["type", "role", "content", "id", "status", "phase"],
  reasoning: ["type", "id", "summary", "content", "encrypted_content", "status"],
  function_call: ["type", "id", "call_id", "name", "arguments", "status"],
  function_call_output: ["type", "id", "call_id", "output", "status"],
};
const idPrefixes: Readonly<Record<string, string>> = { message: "msg", reasoning: "rs", function_call: "fc" };
const partTypes: Readonly<Record<string, readonly string[]>> = {
  user: ["input_text", "input_image", "input_file"],
  system: ["input_text"],
  developer: ["input_text"],
  assistant: ["output_text", "refusal"],
};

const minOutputTokens = 16;
const keyLimit = 64;

function frameViolations(body: JsonObject): string[] {
  const { include, max_output_tokens: most, prompt_cache_key: key } = body;
  const { effort } = toObject(body.reasoning);
  const thinks = effort !== undefined && effort !== "none";
  return [
    ...Object.keys(body)
      .filter((name) => !fields.has(name))
      .map((name) => `Unknown parameter: '${name}'.`),
    ...Object.keys(toObject(body.stream_options))
      .filter((name) => name !== "include_obfuscation")
      .map((name) => `Unknown parameter: 'stream_options.${name}'.`),
    ...(toText(body.model) ? [] : ["The request names no model."]),
    ...(body.stream === true ? [] : ["The request does not ask for a stream."]),
    ...(body.store === false ? [] : ["The request lets the vendor store the response."]),
    ...(body.previous_response_id === undefined
      ? []
      : ["The request goes on from a response that is not stored."]),
    ...(thinks && !toList(include).includes("reasoning.encrypted_content")
      ? ["The request does not ask for the encrypted reasoning."]
      : []),
    ...(thinks && (body.temperature !== undefined || body.top_p !== undefined)
      ? ["Unsupported parameter: a model that thinks takes no temperature and no top_p."]
      : []),
    ...(typeof most === "number" && most < minOutputTokens ? ["max_output_tokens is below 16."] : []),
    ...(typeof key === "string" && key.length > keyLimit
      ? ["prompt_cache_key is longer than 64 characters."]
      : []),
    ...(toList(body.input).length === 0 ? ["The request has no input."] : []),
  ];
}

function inputViolations(
  items: readonly JsonObject[],
  reasoningBefore: ReadonlyMap<string, string>,
): string[] {
  return [
    ...items.flatMap((item, at) => itemViolations(item, items[at + 1])),
    ...items.flatMap((item, at) => orderViolations(item, items.slice(0, at), reasoningBefore)),
    ...callViolations(items),
  ];
}

const typeOf = (item: JsonObject | undefined): string =>
  toText(item?.type) ?? (item?.role === undefined ? "none" : "message");

function itemViolations(item: JsonObject, next: JsonObject | undefined): string[] {
  const type = typeOf(item);
  const known = itemFields[type];
  if (type === "item_reference") return ["Items are not persisted when `store` is set to false."];
  if (known === undefined) return [`Invalid value: '${type}' as the type of an item.`];
  const prefix = idPrefixes[type];
  const { id } = item;
  return [
    ...Object.keys(item)
      .filter((name) => !known.includes(name))
      .map((name) => `Unknown parameter: '${name}' of an item of type ${type}.`),
    ...(typeof id === "string" && prefix !== undefined && !id.startsWith(`${prefix}_`)
      ? [`Expected an ID of an item of type ${type} that begins with '${prefix}', but got '${id}'.`]
      : []),
    ...(type === "message" ? messageViolations(item) : []),
    ...(type === "reasoning" ? reasoningViolations(item, next) : []),
    ...(type === "function_call" && !isObject(parseJson(String(item.arguments)))
      ? [`The arguments of a call are no JSON object: ${String(item.arguments)}`]
      : []),
    ...(type === "function_call_output" && typeof item.output !== "string" && !Array.isArray(item.output)
      ? ["A call's output is neither a text nor a list."]
      : []),
  ];
}

function messageViolations({ role, content }: JsonObject): string[] {
  const types = partTypes[String(role)];
  if (types === undefined) return [`Invalid value: '${String(role)}' as a role.`];
  if (typeof content === "string") return [];
  const parts = toList(content).map(toObject);
  return [
    ...(parts.length === 0 ? [`A message of the role ${String(role)} has no content.`] : []),
    ...parts
      .filter(({ type }) => !types.includes(String(type)))
      .map(({ type }) => `Invalid value: '${String(type)}' in a message of the role ${String(role)}.`),
  ];
}

function reasoningViolations(item: JsonObject, next: JsonObject | undefined): string[] {
  const follows =
    typeOf(next) === "function_call" || next?.role === "assistant" || typeOf(next) === "reasoning";
  return [
    ...(Array.isArray(item.summary) ? [] : ["A reasoning item has no summary."]),
    ...(item.encrypted_content === undefined || item.encrypted_content === null
      ? [`The reasoning item ${String(item.id)} is not persisted and comes without its encrypted content.`]
      : isEncrypted(item.encrypted_content)
        ? []
        : ["The encrypted content of a reasoning item could not be verified."]),
    ...(follows ? [] : [`Item ${String(item.id)} of type 'reasoning' came without its following item.`]),
  ];
}

/** An item that was written after thoughts is accepted only with them. */
function orderViolations(
  item: JsonObject,
  before: readonly JsonObject[],
  reasoningBefore: ReadonlyMap<string, string>,
): string[] {
  const id = toText(item.id) ?? "";
  const needed = reasoningBefore.get(id);
  if (needed === undefined || before.some((one) => one.id === needed)) return [];
  return [`Item '${id}' of type '${typeOf(item)}' came without its 'reasoning' item '${needed}'.`];
}

function callViolations(items: readonly JsonObject[]): string[] {
  const problems: string[] = [];
  const open = new Set<string>();
  const seen = new Set<string>();
  for (const item of items) {
    const id = String(item.call_id);
    if (item.type === "function_call") {
      if (seen.has(id)) problems.push(`The call id ${id} is used twice.`);
      if (id.length > keyLimit) problems.push(`The call id ${id} is longer than 64 characters.`);
      seen.add(id);
      open.add(id);
    } else if (item.type === "function_call_output") {
      if (!open.delete(id)) problems.push(`No tool call found for function call output with call_id ${id}.`);
    } else if (item.role === "user") {
      for (const one of open) problems.push(`No tool output found for function call ${one}.`);
      open.clear();
    }
  }
  for (const id of open) problems.push(`No tool output found for function call ${id}.`);
  return problems;
}

function toolViolations(body: JsonObject): string[] {
  if (body.tools === undefined)
    return body.tool_choice === undefined ? [] : ["A tool_choice comes without tools."];
  const tools = toList(body.tools).map(toObject);
  return [
    ...tools
      .filter(({ type }) => type !== "function")
      .map(({ type }) => `The request offers a tool of the type ${String(type)}.`),
    ...declarationViolations(tools.map((tool) => ({ ...tool, schema: tool.parameters }))),
    ...tools
      .filter(
        ({ strict, parameters }) => strict === true && toObject(parameters).additionalProperties !== false,
      )
      .map(({ name }) => `The schema of the strict tool ${String(name)} allows additional properties.`),
  ];
}

/** An output item that is being written. */
interface OpenItem {
  readonly kind: "reasoning" | "message" | "function_call";
  readonly index: number;
  readonly id: string;
  readonly begun: JsonObject;
  text: string;
}

function writeResponses(
  model: string,
  newNumber: () => number,
  reasoningBefore: Map<string, string>,
): AnswerWriter {
  const number = newNumber();
  const output: JsonObject[] = [];
  const calls = new Map<number, OpenItem>();
  let sequence = 0;
  let isBegun = false;
  let open: OpenItem | undefined;
  let count = 0;
  let reasoningId: string | undefined;

  const event = (type: string, data: JsonObject): ServedEvent => ({
    name: type,
    data: { type, sequence_number: sequence++, ...data },
  });
  const response = (more: JsonObject): JsonObject => ({
    id: `resp_${number}`,
    object: "response",
    created_at: 0,
    model,
    store: false,
    error: null,
    ...more,
  });
  const begin = (): ServedEvent[] => {
    if (isBegun) return [];
    isBegun = true;
    const started = response({ status: "in_progress", incomplete_details: null, output: [], usage: null });
    return [
      event("response.created", { response: started }),
      event("response.in_progress", { response: started }),
    ];
  };
  const add = (kind: OpenItem["kind"], prefix: string, more: JsonObject): [OpenItem, ServedEvent] => {
    const id = `${prefix}_${newNumber()}`;
    if (kind === "reasoning") reasoningId = id;
    else if (reasoningId !== undefined) reasoningBefore.set(id, reasoningId);
    const item: OpenItem = { kind, index: count++, id, begun: { id, type: kind, ...more }, text: "" };
    return [item, event("response.output_item.added", { output_index: item.index, item: item.begun })];
  };
  const finish = (item: OpenItem, more: JsonObject): ServedEvent => {
    const done = { ...item.begun, ...more };
    output[item.index] = done;
    return event("response.output_item.done", { output_index: item.index, item: done });
  };
  const close = (): ServedEvent[] => {
    const item = open;
    open = undefined;
    if (item === undefined) return [];
    const { text } = item;
    const here = { item_id: item.id, output_index: item.index };
    if (item.kind === "reasoning") {
      const part = { type: "summary_text", text };
      return [
        event("response.reasoning_summary_text.done", { ...here, summary_index: 0, text }),
        event("response.reasoning_summary_part.done", { ...here, summary_index: 0, part }),
        finish(item, { summary: [part], encrypted_content: encrypt(text) }),
      ];
    }
    const part = { type: "output_text", annotations: [], logprobs: [], text };
    return [
      event("response.output_text.done", { ...here, content_index: 0, text, logprobs: [] }),
      event("response.content_part.done", { ...here, content_index: 0, part }),
      finish(item, { status: "completed", content: [part] }),
    ];
  };
  const closeCalls = (): ServedEvent[] => {
    const events = [...calls.values()].flatMap((item) => [
      event("response.function_call_arguments.done", {
        item_id: item.id,
        output_index: item.index,
        arguments: item.text,
      }),
      finish(item, { status: "completed", arguments: item.text }),
    ]);
    calls.clear();
    return events;
  };
  /** The item to which a delta belongs, and its first event. */
  const ensure = (kind: "reasoning" | "message"): [OpenItem, ServedEvent[]] => {
    if (open?.kind === kind) return [open, []];
    const before = [...begin(), ...close(), ...closeCalls()];
    const [item, added] =
      kind === "reasoning"
        ? add(kind, "rs", { summary: [], encrypted_content: encrypt("") })
        : add(kind, "msg", { status: "in_progress", role: "assistant", content: [] });
    open = item;
    const here = { item_id: item.id, output_index: item.index };
    const part =
      kind === "reasoning"
        ? event("response.reasoning_summary_part.added", {
            ...here,
            summary_index: 0,
            part: { type: "summary_text", text: "" },
          })
        : event("response.content_part.added", {
            ...here,
            content_index: 0,
            part: { type: "output_text", annotations: [], logprobs: [], text: "" },
          });
    return [item, [...before, added, part]];
  };
  const delta = (kind: "reasoning" | "message", text: string): ServedEvent[] => {
    const [item, before] = ensure(kind);
    item.text += text;
    const here = { item_id: item.id, output_index: item.index };
    return [
      ...before,
      kind === "reasoning"
        ? event("response.reasoning_summary_text.delta", { ...here, summary_index: 0, delta: text })
        : event("response.output_text.delta", { ...here, content_index: 0, delta: text, logprobs: [] }),
    ];
  };
  return {
    text: (text) => delta("message", text),
    reasoning: (text) => delta("reasoning", text),
    call(index, piece, started) {
      const events = [...begin(), ...close()];
      const known = calls.get(index);
      const [item, added] =
        known === undefined
          ? add("function_call", "fc", {
              status: "in_progress",
              arguments: "",
              call_id: started?.id,
              name: started?.name,
            })
          : [known, undefined];
      calls.set(index, item);
      item.text += piece;
      return [
        ...events,
        ...(added === undefined ? [] : [added]),
        event("response.function_call_arguments.delta", {
          item_id: item.id,
          output_index: item.index,
          delta: piece,
        }),
      ];
    },
    end(reason, usage) {
      if (reason === undefined) return [];
      const details = incompleteReasons[reason];
      const status = details === undefined ? "completed" : "incomplete";
      const events = [...begin(), ...close(), ...closeCalls()];
      const last = response({
        status,
        incomplete_details: details === undefined ? null : { reason: details },
        output,
        usage: usageOnWire(usage),
      });
      return [...events, event(`response.${status}`, { response: last })];
    },
    done: "",
  };
}

const incompleteReasons: Readonly<Record<string, string>> = {
  length: "max_output_tokens",
  content_filter: "content_filter",
};

const usageOnWire = (usage: Usage): JsonObject => ({
  input_tokens: usage.promptTokens,
  input_tokens_details: { cached_tokens: usage.cachedTokens ?? 0 },
  output_tokens: usage.completionTokens,
  output_tokens_details: { reasoning_tokens: usage.reasoningTokens ?? 0 },
  total_tokens: usage.promptTokens + usage.completionTokens,
});
