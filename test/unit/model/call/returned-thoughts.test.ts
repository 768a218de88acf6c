import { afterEach, expect, test } from "vitest";
import { silentLog } from "../../../../src/base/log.ts";
import type { Api } from "../../../../src/config/api.ts";
import { newMessageId, newPartId, newSessionId } from "../../../../src/message/ids.ts";
import type { Message } from "../../../../src/message/message.ts";
import type { Part } from "../../../../src/message/part.ts";
import { callModel } from "../../../../src/model/call/call-model.ts";
import { describeModel } from "../../../../src/model/catalog/catalog.ts";
import { sendHttp } from "../../../../src/model/http.ts";
import type { StepEvent } from "../../../../src/model/model.ts";
import { Wires } from "../../../../src/model/wires/wires.ts";
import { isObject } from "../../../support/json.ts";
import { listen } from "../../../support/listen.ts";

const open: AsyncDisposable[] = [];
afterEach(async () => {
  for (const server of open.splice(0)) await server[Symbol.asyncDispose]();
});

const sessionId = newSessionId();
const question: Message = {
  info: { id: newMessageId(), sessionId, role: "user", time: { created: 1 }, agent: "build" },
  parts: [{ id: newPartId(), type: "text", text: "Look." }],
};

/** The parts that the turn stores of a step. */
function store(events: readonly StepEvent[]): Part[] {
  const parts: Part[] = [];
  let text = "";
  for (const event of events) {
    if (event.type === "call") {
      const { providerCallId, tool, input } = event;
      const state = { status: "completed" as const, input, output: "seen", time: { start: 1, end: 2 } };
      parts.push({ id: newPartId(), type: "tool", callId: "own", providerCallId, tool, state });
    } else if ("text" in event) text += event.text;
    else if (event.type !== "call-start") {
      const type = event.type === "text-end" ? "text" : "reasoning";
      const { metadata } = event;
      parts.push({ id: newPartId(), type, text, ...(metadata && { providerMetadata: metadata }) });
      text = "";
    }
  }
  return parts;
}

/** Streams these events to a model, and returns the request that continues the conversation. */
async function continueAfter(api: Api, modelId: string, events: readonly object[]): Promise<unknown> {
  const bodies: unknown[] = [];
  const server = await listen((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      bodies.push(JSON.parse(Buffer.concat(chunks).toString()));
      const stream = events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join("");
      response.writeHead(200, { "content-type": "text/event-stream" }).end(stream);
    });
  });
  open.push(server);
  const ref = { provider: "test", model: modelId };
  const model = describeModel(ref, { known: undefined, api, config: { reasoning: true } });
  const baseURL = `${server.url}/v1`;
  const endpoint = { provider: "test", api, baseURL, modelId, headers: {}, options: {}, stallMs: 10_000 };
  const deps = { wires: new Wires(sendHttp), log: silentLog };
  const heard: StepEvent[] = [];
  const call = (messages: Message[]) => {
    const { signal } = new AbortController();
    return callModel({ model, system: [], messages, tools: [], signal }, endpoint, deps, (event) => {
      heard.push(event);
    });
  };
  expect(await call([question])).toMatchObject({ type: "finish", reason: "tool-calls" });
  const answer: Message = {
    info: {
      id: newMessageId(),
      sessionId,
      role: "assistant",
      parentId: question.info.id,
      time: { created: 1 },
      agent: "build",
      model: ref,
      cost: 0,
      tokens: { input: 0, output: 0, reasoning: 0, cache: { read: 0, write: 0 } },
    },
    parts: store(heard),
  };
  await call([question, answer]);
  return bodies.at(-1);
}

const contentOf = (body: unknown, at: number): unknown => {
  const list: unknown = isObject(body) ? (body.messages ?? body.input) : undefined;
  return Array.isArray(list) ? list[at] : undefined;
};

test("over Messages, returns thinking with its signature, and redacted thinking", async () => {
  const block = (index: number, content_block: object, ...deltas: object[]) => [
    { type: "content_block_start", index, content_block },
    ...deltas.map((delta) => ({ type: "content_block_delta", index, delta })),
    { type: "content_block_stop", index },
  ];
  const body = await continueAfter("messages", "claude-sonnet-5-5", [
    { type: "message_start", message: { id: "m", usage: { input_tokens: 10, output_tokens: 1 } } },
    ...block(
      0,
      { type: "thinking", thinking: "", signature: "" },
      { type: "thinking_delta", thinking: "Hm" },
      { type: "thinking_delta", thinking: ", yes" },
      { type: "signature_delta", signature: "signed" },
    ),
    ...block(1, { type: "redacted_thinking", data: "hidden" }),
    ...block(2, { type: "text", text: "" }, { type: "text_delta", text: "I look." }),
    ...block(
      3,
      { type: "tool_use", id: "toolu_1", name: "read", input: {} },
      { type: "input_json_delta", partial_json: '{"path":' },
      { type: "input_json_delta", partial_json: '"a"}' },
    ),
    { type: "message_delta", delta: { stop_reason: "tool_use" }, usage: { output_tokens: 30 } },
    { type: "message_stop" },
  ]);
  expect(contentOf(body, 1)).toEqual({
    role: "assistant",
    content: [
      { type: "thinking", thinking: "Hm, yes", signature: "signed" },
      { type: "redacted_thinking", data: "hidden" },
      { type: "text", text: "I look." },
      { type: "tool_use", id: "toolu_1", name: "read", input: { path: "a" } },
    ],
  });
});

test("over Responses, returns reasoning encrypted, once for each item, without ids", async () => {
  const summary = (summary_index: number, delta: string) => [
    { type: "response.reasoning_summary_part.added", item_id: "rs_1", output_index: 0, summary_index },
    { type: "response.reasoning_summary_text.delta", item_id: "rs_1", output_index: 0, summary_index, delta },
    { type: "response.reasoning_summary_part.done", item_id: "rs_1", output_index: 0, summary_index },
  ];
  const item = (type: string, output_index: number, item: object) => ({
    type: `response.output_item.${type}`,
    output_index,
    item,
  });
  const call = { type: "function_call", id: "fc_1", call_id: "call_1", name: "read" };
  const message = { type: "message", id: "msg_1", phase: "commentary", content: [] };
  const body = await continueAfter("responses", "gpt-5.6-sol", [
    item("added", 0, { type: "reasoning", id: "rs_1", encrypted_content: "not whole" }),
    ...summary(0, "First"),
    ...summary(1, "Then"),
    item("done", 0, { type: "reasoning", id: "rs_1", encrypted_content: "sealed" }),
    item("added", 1, message),
    { type: "response.output_text.delta", item_id: "msg_1", output_index: 1, delta: "I look." },
    item("done", 1, message),
    item("added", 2, { ...call, arguments: "" }),
    { type: "response.function_call_arguments.delta", output_index: 2, delta: '{"path":"a"}' },
    item("done", 2, { ...call, arguments: '{"path":"a"}' }),
    { type: "response.completed", response: {} },
  ]);
  expect([1, 2, 3].map((at) => contentOf(body, at))).toEqual([
    {
      type: "reasoning",
      encrypted_content: "sealed",
      summary: [{ type: "summary_text", text: "First\n\nThen" }],
    },
    { role: "assistant", content: "I look.", phase: "commentary" },
    { type: "function_call", call_id: "call_1", name: "read", arguments: '{"path":"a"}' },
  ]);
});

test.each([
  ["gpt-oss-120b", true],
  ["other-model", false],
])("over Responses, %s gets its plain reasoning back: %s", async (modelId, isReturned) => {
  const item = (type: string, output_index: number, item: object) => ({
    type: `response.output_item.${type}`,
    output_index,
    item,
  });
  const reasoning = { type: "reasoning", id: "rs_1", summary: [] };
  const call = { type: "function_call", id: "fc_1", call_id: "call_1", name: "read", arguments: "{}" };
  const body = await continueAfter("responses", modelId, [
    item("added", 0, reasoning),
    { type: "response.reasoning_text.delta", output_index: 0, delta: "Hm" },
    { type: "response.reasoning_text.delta", output_index: 0, delta: ", yes" },
    item("done", 0, { ...reasoning, content: [{ type: "reasoning_text", text: "Hm, yes" }] }),
    item("added", 1, call),
    item("done", 1, call),
    { type: "response.completed", response: {} },
  ]);
  expect(contentOf(body, 1)).toEqual(
    isReturned
      ? { type: "reasoning", id: "rs_1", summary: [], content: [{ type: "reasoning_text", text: "Hm, yes" }] }
      : { type: "function_call", call_id: "call_1", name: "read", arguments: "{}" },
  );
});

const functionCall = { index: 0, id: "call_1", function: { name: "read", arguments: '{"path":"a"}' } };
const chunk = (delta: object, finish_reason: string | null = null) => ({
  choices: [{ index: 0, delta, finish_reason }],
});

test.each([
  ["gpt-oss-120b", "reasoning"],
  ["qwen3-32b", "reasoning_content"],
])("over chat completions, %s gets its reasoning back as %s", async (model, field) => {
  const body = await continueAfter("chat", model, [
    chunk({ [field]: "Hm" }),
    chunk({ [field]: ", yes" }),
    chunk({ tool_calls: [functionCall] }, "tool_calls"),
  ]);
  expect(contentOf(body, 1)).toMatchObject({ role: "assistant", [field]: "Hm, yes" });
});
