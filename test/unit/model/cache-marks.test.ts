import { expect, test } from "vitest";
import { silentLog } from "../../../src/base/log.ts";
import type { Api } from "../../../src/config/api.ts";
import { newMessageId, newPartId, newSessionId } from "../../../src/message/ids.ts";
import type { Message } from "../../../src/message/message.ts";
import type { Part } from "../../../src/message/part.ts";
import { callModel } from "../../../src/model/call/call-model.ts";
import { describeModel } from "../../../src/model/catalog/catalog.ts";
import { Wires } from "../../../src/model/wires/wires.ts";
import { isObject } from "../../support/json.ts";
import { MarkedCache, type PromptBlock } from "../../support/model/prompt-cache.ts";

const sessionId = newSessionId();
const ref = { provider: "gateway", model: "claude-sonnet-5" };
const parallelCalls = 15;

const question: Message = {
  info: { id: newMessageId(), sessionId, role: "user", time: { created: 1 }, agent: "build" },
  parts: [{ id: newPartId(), type: "text", text: "Look at all files." }],
};
const tokens = { input: 0, output: 0, reasoning: 0, cache: { read: 0, write: 0 } };

/** A step with a text and fifteen calls. */
function step(number: number): Message {
  const calls = Array.from({ length: parallelCalls }, (_, index): Part => {
    const id = `call_${number}_${index}`;
    const time = { start: 1, end: 2 };
    return {
      id: newPartId(),
      type: "tool",
      callId: id,
      providerCallId: id,
      tool: "read",
      state: { status: "completed", input: { path: id }, output: `What ${id} says. `.repeat(50), time },
    };
  });
  return {
    info: {
      id: newMessageId(),
      sessionId,
      role: "assistant",
      parentId: question.info.id,
      time: { created: 1 },
      agent: "build",
      model: ref,
      cost: 0,
      tokens,
    },
    parts: [{ id: newPartId(), type: "text", text: `Step ${number}.` }, ...calls],
  };
}

async function bodyOf(api: Api, messages: readonly Message[]): Promise<unknown> {
  let sent = "{}";
  const wires = new Wires((_, { body = [] }) => {
    sent = Buffer.concat(body).toString();
    return Promise.reject(new Error("nothing is sent"));
  });
  const model = describeModel(ref, { known: undefined, api });
  const baseURL = "https://gateway.invalid/v1";
  const endpoint = { ...ref, api, baseURL, modelId: ref.model, headers: {}, options: {}, stallMs: 10_000 };
  const system = ["Be kind and thorough. ".repeat(300)];
  const schema = { type: "object", properties: { path: { type: "string" } } };
  const tools = ["bash", "read"].map((name) => ({ name, description: `Runs ${name}.`, schema }));
  const { signal } = new AbortController();
  await callModel({ model, system, messages, tools, signal }, endpoint, { wires, log: silentLog }, () => {});
  return JSON.parse(sent);
}

const listOf = (value: unknown): unknown[] => (Array.isArray(value) ? value : []);

/** The blocks of a prompt in the order in which they are cached. */
function blocksOf(body: unknown): PromptBlock[] {
  const { tools, system, messages } = isObject(body) ? body : {};
  const contents = listOf(messages).flatMap((message) => {
    if (!isObject(message)) return [];
    const { content, tool_calls: calls, ...rest } = message;
    const blocks = typeof content === "string" ? [{ text: content }] : listOf(content);
    return [...blocks, ...listOf(calls)].map((block) => ({ ...rest, block }));
  });
  return [...listOf(tools), ...listOf(system), ...contents].map((block) => {
    const text = JSON.stringify(block)
      .replaceAll(/,?"cache_control":\{[^}]*\}/g, "")
      .replaceAll('"type":"text",', "");
    return { text, isMarked: JSON.stringify(block).includes("cache_control") };
  });
}

test.each<Api>(["messages", "chat"])(
  "over %s, each request with 15 parallel calls reads the last one from the cache",
  async (api) => {
    const cache = new MarkedCache();
    const messages = [question];
    let before = 0;
    for (let number = 0; number < 4; number++) {
      const blocks = blocksOf(await bodyOf(api, messages));
      expect(blocks.filter(({ isMarked }) => isMarked).length).toBeLessThanOrEqual(4);
      const { read, write, fresh } = cache.take(blocks);
      expect({ number, read, fresh }).toEqual({ number, read: before, fresh: 0 });
      before = read + write;
      messages.push(step(number));
    }
  },
);
