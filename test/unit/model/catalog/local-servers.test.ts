import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { silentLog } from "../../../../src/base/log.ts";
import type { Config } from "../../../../src/config/schema.ts";
import { newMessageId, newPartId, newSessionId } from "../../../../src/message/ids.ts";
import type { Message } from "../../../../src/message/message.ts";
import { openModels } from "../../../../src/model/providers/providers.ts";
import { type ModelServer, startModelServer } from "../../../support/model/model-server.ts";
import * as reply from "../../../support/model/reply.ts";
import { type CollectedEvent, collectEvents } from "../../../support/collect-events.ts";

let server: ModelServer;
beforeAll(async () => {
  server = await startModelServer();
});
afterAll(() => server.close());

const question: Message = {
  info: { id: newMessageId(), sessionId: newSessionId(), role: "user", time: { created: 1 }, agent: "build" },
  parts: [{ id: newPartId(), type: "text", text: "Look" }],
};
const read = { name: "read", description: "Reads.", schema: { type: "object", properties: {} } };

/** Calls a local server that always sends this response. */
async function eventsOf(provider: string, ...answer: reply.Step[]): Promise<CollectedEvent[]> {
  server.reply(answer);
  const config: Config = { provider: { [provider]: { options: { baseURL: server.url } } } };
  const models = openModels({ config, env: {}, credentials: {}, log: silentLog });
  const model = models.find({ provider, model: "qwen3:8b" });
  if (model === undefined) throw new Error(`${provider} cannot be used`);
  const signal = new AbortController().signal;
  const request = { model, system: [], messages: [question], tools: [read], signal };
  return collectEvents((take) => models.call(request, take));
}

async function eventsWithContext(context: number, words: string): Promise<CollectedEvent[]> {
  const options = { baseURL: server.url };
  const config: Config = {
    provider: { ollama: { options, models: { "qwen3:8b": { limit: { context } } } } },
  };
  const models = openModels({ config, env: {}, credentials: {}, log: silentLog });
  const model = models.findByName("ollama/qwen3:8b");
  if (model === undefined) throw new Error("ollama cannot be used");
  const signal = new AbortController().signal;
  const request = { model, system: [words], messages: [question], tools: [read], signal };
  return collectEvents((take) => models.call(request, take));
}

const refusal = (message: string, more: Record<string, unknown> = {}) => ({ error: { message, ...more } });

describe("errors of a local server contain advice", () => {
  test.each([
    [
      "Ollama without the model",
      "ollama",
      reply.status(404, refusal("model 'qwen3:8b' not found", { type: "api_error" })),
      { code: "not-found", retryable: false },
      /"ollama pull"/,
    ],
    [
      "Ollama with a model that takes no tools",
      "ollama",
      reply.status(400, refusal("registry.ollama.ai/library/qwen3:8b does not support tools")),
      { code: "bad-request", retryable: false },
      /"tool_call": false/,
    ],
    [
      "Ollama without the memory for the model",
      "ollama",
      reply.status(500, refusal("model requires more system memory (9.1 GiB) than is available (4.0 GiB)")),
      { code: "bad-request", retryable: false },
      /more system memory/,
    ],
    [
      "LM Studio without a model",
      "lmstudio",
      reply.status(
        404,
        refusal("No models loaded. Please load a model with the `lms load` command.", {
          code: "model_not_found",
        }),
      ),
      { code: "not-found", retryable: false },
      /lms load/,
    ],
    [
      "LM Studio with too small a context, told inside the stream",
      "lmstudio",
      reply.line(
        `event: error\ndata: ${JSON.stringify(refusal("Trying to keep the first 9000 tokens when context the overflows. However, the model is loaded with context length of only 4096 tokens, which is not enough."))}\n`,
      ),
      { code: "context-length", retryable: false },
      /with a larger context/,
    ],
    [
      "llama.cpp that loads its model",
      "llamacpp",
      reply.status(503, refusal("Loading model", { code: 503, type: "unavailable_error" })),
      { code: "overloaded", retryable: true },
      /Loading model/,
    ],
    [
      "llama.cpp without its templates",
      "llamacpp",
      reply.status(500, refusal("tools param requires --jinja flag", { code: 500 })),
      { code: "bad-request", retryable: false },
      /Start llama\.cpp with --jinja/,
    ],
    [
      "llama.cpp with too small a context",
      "llamacpp",
      reply.status(400, refusal("the request exceeds the available context size, try increasing it")),
      { code: "context-length", retryable: false },
      /with a larger context/,
    ],
    [
      "vLLM without a parser for calls",
      "vllm",
      reply.status(400, refusal('"auto" tool choice requires --enable-auto-tool-choice to be set')),
      { code: "bad-request", retryable: false },
      /--tool-call-parser/,
    ],
    [
      "vLLM with another model",
      "vllm",
      reply.status(404, refusal("The model `qwen3:8b` does not exist.")),
      { code: "not-found", retryable: false },
      /does not exist/,
    ],
  ])("%s", async (_name, provider, answer, expected, words) => {
    const events = await eventsOf(provider, answer);
    expect(events).toEqual([
      {
        type: "failed",
        error: expect.objectContaining({ ...expected, message: expect.stringMatching(words) }),
      },
    ]);
  });

  test("reports a context smaller than instructions and tools before any request", async () => {
    const before = server.requests.length;
    const words = "Do this, not that. ".repeat(2_000);
    const small = await eventsWithContext(4_096, words);
    expect(small).toEqual([
      {
        type: "failed",
        error: {
          code: "bad-request",
          message: expect.stringMatching(
            /^The context of qwen3:8b holds 4096 tokens, but instructions and tools alone take more than 7\d{3}\. /,
          ),
          retryable: false,
        },
      },
    ]);
    expect(server.requests.length).toBe(before);
    server.reply("Fine.");
    expect((await eventsWithContext(8_192, words)).at(-1)).toMatchObject({ type: "finish" });
  });

  test("an OpenAI model that supports tools only over another API", async () => {
    const words =
      "Function tools are not supported in /v1/chat/completions. Please use /v1/responses instead.";
    const [failed] = await eventsOf("openai", reply.status(400, refusal(words)));
    expect(failed).toMatchObject({
      error: { code: "bad-request", message: expect.stringContaining('Set "api": "responses"') },
    });
  });
});

/** The events of an answer, without the ids. */
function gist(events: readonly CollectedEvent[]) {
  const joined = (type: "text-delta" | "reasoning-delta") =>
    events.map((event) => (event.type === type ? event.text : "")).join("");
  const calls = events.filter((event) => event.type === "call");
  const finish = events.find((event) => event.type === "finish");
  return {
    text: joined("text-delta"),
    thoughts: joined("reasoning-delta"),
    calls: calls.map(({ input }) => input),
    ids: new Set(calls.map(({ providerCallId }) => providerCallId)).size,
    ...(finish && { reason: finish.reason, estimated: finish.estimated ?? false }),
  };
}

const delta = (fields: Record<string, unknown>, finish: string | null = null) => ({
  choices: [{ index: 0, delta: fields, finish_reason: finish }],
});
const usage = { usage: { prompt_tokens: 10, completion_tokens: 4, total_tokens: 14 } };
const lines = (chunks: readonly unknown[], newline = "\n") =>
  chunks.map((chunk) => `data: ${JSON.stringify(chunk)}${newline}${newline}`).join("");
const sent = (text: string): reply.Step => ({ do: "bytes", bytes: Buffer.from(text) });
const requested = (id: string | undefined, args: unknown) => ({
  ...(id !== undefined && { id }),
  type: "function",
  function: { name: "read", arguments: args },
});
const call = (n: number) => ({ filePath: `${n}.txt` });

describe("the stream of a local server is parsed", () => {
  const none = { text: "", thoughts: "", calls: [], ids: 0, reason: "stop", estimated: false };

  test.each([
    [
      "whole calls without index and id, the arguments as objects, the end as of text",
      lines([
        delta({
          role: "assistant",
          content: null,
          tool_calls: [requested("", call(1)), requested("", call(2))],
        }),
        delta({ content: "", tool_calls: [requested(undefined, call(3))] }),
        { ...delta({}, "stop"), ...usage },
      ]),
      { ...none, calls: [call(1), call(2), call(3)], ids: 3, reason: "tool-calls" },
    ],
    [
      "calls of one index and one id in separate chunks",
      lines([
        delta({ tool_calls: [{ index: 0, ...requested("call_0", JSON.stringify(call(1))) }] }),
        delta({ tool_calls: [{ index: 0, ...requested("call_0", JSON.stringify(call(2))) }] }, "stop"),
        { choices: [], ...usage },
      ]),
      { ...none, calls: [call(1), call(2)], ids: 2, reason: "tool-calls" },
    ],
    [
      "thoughts under the name reasoning, and no usage",
      lines([
        delta({ role: "assistant", content: "", reasoning: "Hm, " }),
        delta({ content: "", reasoning: "yes." }),
        delta({ content: "Fine." }),
        delta({ content: "" }, "stop"),
      ]),
      { ...none, text: "Fine.", thoughts: "Hm, yes.", estimated: true },
    ],
    [
      "thoughts in the text, their tags cut anywhere",
      lines([
        ...[
          "\n",
          "<th",
          "ink>Hm",
          ", <b>",
          " </thi",
          "s></",
          "think",
          ">\n",
          "\nFine. <think>no</think>",
        ].map((content) => delta({ content })),
        { ...delta({}, "stop"), ...usage },
      ]),
      { ...none, text: "Fine. <think>no</think>", thoughts: "Hm, <b> </this>" },
    ],
    [
      "thoughts in the text that never end, and a call",
      lines([
        delta({ content: "[THINK]Hm" }),
        delta({ tool_calls: [{ index: 0, ...requested("a", JSON.stringify(call(1))) }] }, "tool_calls"),
        { choices: [], ...usage },
      ]),
      { ...none, thoughts: "Hm", calls: [call(1)], ids: 1, reason: "tool-calls" },
    ],
    [
      "a text that only looks like a tag",
      lines([delta({ content: "<thi" }), { ...delta({ content: "s>" }, "stop"), ...usage }]),
      { ...none, text: "<this>" },
    ],
    [
      "nothing of a tag but its beginning",
      lines([{ ...delta({ content: " <" }, "stop"), ...usage }]),
      { ...none, text: " <" },
    ],
    [
      "comments, CRLF, further fields and no [DONE]",
      `: keep-alive\r\n\r\n${lines([delta({ role: "assistant", content: null }), { ...delta({ content: "Ü" }), timings: { n: 1 } }, { ...delta({}, "stop"), ...usage }], "\r\n")}: bye\r\n`,
      { ...none, text: "Ü" },
    ],
  ])("%s", async (_name, text, expected) => {
    expect(gist(await eventsOf("ollama", sent(text), reply.end()))).toEqual(expected);
  });
});
