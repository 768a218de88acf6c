import { afterEach, expect, test } from "vitest";
import { silentLog } from "../../../../src/base/log.ts";
import type { Api } from "../../../../src/config/api.ts";
import { newMessageId, newPartId, newSessionId } from "../../../../src/message/ids.ts";
import type { Message } from "../../../../src/message/message.ts";
import { callModel } from "../../../../src/model/call/call-model.ts";
import { describeModel } from "../../../../src/model/catalog/catalog.ts";
import { sendHttp } from "../../../../src/model/http.ts";
import type { StepEnd } from "../../../../src/model/model.ts";
import { Wires } from "../../../../src/model/wires/wires.ts";
import { listen } from "../../../support/listen.ts";

const open: AsyncDisposable[] = [];
afterEach(async () => {
  for (const server of open.splice(0)) await server[Symbol.asyncDispose]();
});

const sessionId = newSessionId();
const ask = (text: string): Message => ({
  info: { id: newMessageId(), sessionId, role: "user", time: { created: 1 }, agent: "build" },
  parts: [{ id: newPartId(), type: "text", text }],
});

const data = (value: unknown) => `data: ${JSON.stringify(value)}\n\n`;
const answers: Readonly<Record<Api, string>> = {
  chat: data({ choices: [{ index: 0, delta: { content: "Fine." }, finish_reason: "stop" }] }),
  responses:
    data({ type: "response.output_text.delta", output_index: 0, delta: "Fine." }) +
    data({ type: "response.completed", response: {} }),
  messages:
    data({ type: "content_block_start", index: 0, content_block: { type: "text", text: "Fine." } }) +
    data({ type: "message_delta", delta: { stop_reason: "end_turn" } }) +
    data({ type: "message_stop" }),
};

/** Calls a model twice over a server that rejects requests with a field, and returns all requests and the ends. */
async function callTwice(
  api: Api,
  modelId: string,
  field: string,
  message: string,
): Promise<{ bodies: string[]; ends: StepEnd[] }> {
  const bodies: string[] = [];
  const server = await listen((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      const body = Buffer.concat(chunks).toString();
      bodies.push(body);
      if (!body.includes(`"${field}"`)) {
        response.writeHead(200, { "content-type": "text/event-stream" }).end(answers[api]);
        return;
      }
      const error = { type: "invalid_request_error", message };
      response.writeHead(400, { "content-type": "application/json" }).end(JSON.stringify({ error }));
    });
  });
  open.push(server);
  const model = describeModel(
    { provider: "gateway", model: modelId },
    { known: undefined, api, config: { reasoning: true } },
  );
  const endpoint = {
    provider: "gateway",
    api,
    baseURL: `${server.url}/v1`,
    modelId,
    headers: {},
    options: {},
  };
  const deps = { wires: new Wires(sendHttp), log: silentLog };
  const thought: Message = {
    info: {
      id: newMessageId(),
      sessionId,
      role: "assistant",
      parentId: newMessageId(),
      time: { created: 1 },
      agent: "build",
      model: model.ref,
      cost: 0,
      tokens: { input: 0, output: 0, reasoning: 0, cache: { read: 0, write: 0 } },
    },
    parts: [
      { id: newPartId(), type: "reasoning", text: "Hm" },
      { id: newPartId(), type: "text", text: "Well." },
    ],
  };
  const { signal } = new AbortController();
  const tools = [{ name: "read", description: "Reads.", schema: { type: "object", properties: {} } }];
  const toolChoice = "none" as const;
  const request = { model, system: ["Be kind."], messages: [ask("Hi"), thought], tools, toolChoice, signal };
  const call = () => callModel(request, { ...endpoint, stallMs: 10_000 }, deps, () => {});
  return { bodies, ends: [await call(), await call()] };
}

test.each<[Api, string, string, string]>([
  [
    "chat",
    "claude-sonnet-5",
    "cache_control",
    "messages.0.content.0.cache_control: Extra inputs are not permitted",
  ],
  ["messages", "claude-sonnet-5", "cache_control", "Unknown field: cache_control"],
  ["responses", "gpt-5", "prompt_cache_key", "Unsupported parameter: 'prompt_cache_key'"],
  [
    "responses",
    "gpt-5",
    "summary",
    "Your organization must be verified to generate reasoning summaries (reasoning.summary)",
  ],
  ["responses", "gpt-5", "include", "Encrypted content is not supported with this model"],
  ["chat", "deepseek-v4", "tool_choice", "This model does not support this tool_choice"],
  ["chat", "qwen3-32b", "reasoning_content", "property 'reasoning_content' is unsupported"],
])(
  "over %s, %s is called again without a rejected %s, which is not sent any more",
  async (api, model, field, words) => {
    const { bodies, ends } = await callTwice(api, model, field, words);
    expect(ends.map(({ type }) => type)).toEqual(["finish", "finish"]);
    expect(bodies.map((body) => body.includes(`"${field}"`))).toEqual([true, false, false]);
  },
);

test("a request that is rejected for another reason is not sent again", async () => {
  const { bodies, ends } = await callTwice("chat", "claude-sonnet-5", "cache_control", "The prompt is odd.");
  expect(ends.map(({ type }) => type)).toEqual(["failed", "failed"]);
  expect(bodies).toHaveLength(2);
});
