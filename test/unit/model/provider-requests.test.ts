import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { silentLog } from "../../../src/base/log.ts";
import type { Config } from "../../../src/config/schema.ts";
import { newMessageId, newPartId, newSessionId } from "../../../src/message/ids.ts";
import type { AssistantInfo, Message, ModelRef } from "../../../src/message/message.ts";
import type { Part, ProviderMetadata } from "../../../src/message/part.ts";
import { presets } from "../../../src/model/catalog/catalog.ts";
import { Catalog } from "../../../src/model/catalog/known-models.ts";
import { type Send, sendHttp } from "../../../src/model/http.ts";
import { openModels } from "../../../src/model/providers/providers.ts";
import { isObject } from "../../support/json.ts";
import { type ModelServer, startModelServer } from "../../support/model/model-server.ts";

let server: ModelServer;
beforeAll(async () => {
  server = await startModelServer();
  server.otherwise("Fine.");
});
afterAll(() => server.close());

const catalog = new Catalog(silentLog);
const sessionId = newSessionId();
const foreign: ModelRef = { provider: "elsewhere", model: "other" };
/** An id that only its own provider accepts. */
const foreignId = `toolu_${"x".repeat(70)}.1`;

type PartInput<P = Part> = P extends Part ? Omit<P, "id"> : never;
const part = (fields: PartInput): Part => ({ id: newPartId(), ...fields });
const reply = (text: string) => part({ type: "text", text });
const thought = (text: string) => part({ type: "reasoning", text });
const called = (callId: string, providerCallId: string, providerMetadata?: ProviderMetadata) =>
  part({
    type: "tool",
    callId,
    providerCallId,
    ...(providerMetadata !== undefined && { providerMetadata }),
    tool: "read",
    state: { status: "completed", input: { path: "a" }, output: "one", time: { start: 1, end: 2 } },
  });
const detail = { type: "reasoning.encrypted", data: "c2VhbGVk" };
const ended = (providerMetadata: ProviderMetadata) =>
  part({
    type: "step-finish",
    reason: "tool-calls",
    tokens: { input: 1, output: 1, reasoning: 0, cache: { read: 0, write: 0 } },
    cost: 0,
    providerMetadata,
  });
const requested = (text: string): Message => ({
  info: { id: newMessageId(), sessionId, role: "user", time: { created: 1 }, agent: "build" },
  parts: [reply(text)],
});
function answered(model: ModelRef, ...parts: Part[]): Message {
  const info: AssistantInfo = {
    id: newMessageId(),
    sessionId,
    role: "assistant",
    parentId: newMessageId(),
    time: { created: 1 },
    agent: "build",
    model,
    cost: 0,
    tokens: { input: 0, output: 0, reasoning: 0, cache: { read: 0, write: 0 } },
  };
  return { info, parts };
}

/** The request over chat completions for a conversation that another model started and this one continued. */
async function requestOf(ref: ModelRef, host: string) {
  let url = "";
  const forward: Send = (to, request) => {
    url = to.href;
    return sendHttp(new URL(`${server.url}/chat/completions`), request);
  };
  const config: Config = { provider: { [ref.provider]: { api: "chat", options: { apiKey: "the-key" } } } };
  const models = openModels({ config, env: {}, credentials: {}, catalog, log: silentLog, send: forward });
  const model = models.find(ref);
  if (model === undefined) throw new Error(`${ref.provider} cannot be used`);
  const plain = { provider: ref.provider, model: ref.model };
  const owner = { ...plain, api: "chat", host };
  const request = {
    model,
    system: ["Be kind."],
    messages: [
      requested("First"),
      answered(foreign, thought("foreign thought"), called("own1", foreignId)),
      answered(plain, thought("earlier thought"), reply("Read it.")),
      requested("Second"),
      answered(
        plain,
        thought("own thought"),
        called("own2", "abc123XYZ", { ...owner, data: { thoughtSignature: "signature" } }),
        ended({ ...owner, data: { reasoning_details: [detail] } }),
      ),
    ],
    tools: [
      {
        name: "read",
        description: "Reads.",
        schema: {
          $schema: "https://json-schema.org/draft/2020-12/schema",
          type: "object",
          properties: { path: { type: ["string", "null"] } },
          additionalProperties: false,
        },
      },
    ],
    temperature: 0.3,
    topP: 0.9,
    signal: new AbortController().signal,
  };
  expect(await models.call(request, () => undefined)).toMatchObject({ type: "finish" });
  const sent = server.requests.at(-1);
  if (sent === undefined) throw new Error("nothing was asked");
  return { url, key: sent.headers.authorization, body: sent.body };
}

const fullSchema = {
  type: "object",
  properties: { path: { type: ["string", "null"] } },
  additionalProperties: false,
};
const moonshotSchema = {
  type: "object",
  properties: { path: { anyOf: [{ type: "string" }, { type: "null" }] } },
  additionalProperties: false,
};
const cacheKey = { prompt_cache_key: sessionId };
const usage = { stream_options: { include_usage: true } };
const sampled = { temperature: 0.3, top_p: 0.9 };

/** The parts of a request that differ between providers, next to its settings. */
interface Differences {
  callIds: unknown[];
  reasoning: unknown[];
  signatures: unknown[];
  details: unknown[];
  parameters: unknown;
  marks: boolean[];
}

/** The common values of most providers. */
const usual: Differences = {
  callIds: ["own1", "abc123XYZ"],
  reasoning: [undefined, undefined, undefined],
  signatures: [undefined, undefined],
  details: [undefined, undefined],
  parameters: fullSchema,
  marks: Array.from({ length: 8 }, () => false),
};

/** Returns the complete body of a request to this model. */
function bodyOf(model: string, settings: Record<string, unknown>, differences: Differences) {
  const { callIds, reasoning, signatures, details, parameters, marks } = differences;
  const content = (text: string, message: number) =>
    marks[message] ? [{ type: "text", text, cache_control: { type: "ephemeral" } }] : text;
  const calling = (call: number, thoughts: unknown) =>
    given({
      role: "assistant",
      content: null,
      reasoning_content: thoughts,
      reasoning_details: details[call],
      tool_calls: [
        given({
          id: callIds[call],
          type: "function",
          function: { name: "read", arguments: '{"path":"a"}' },
          extra_content: signatures[call],
        }),
      ],
    });
  return {
    model,
    messages: [
      { role: "system", content: content("Be kind.", 0) },
      { role: "user", content: content("First", 1) },
      calling(0, reasoning[0]),
      { role: "tool", tool_call_id: callIds[0], content: content("one", 3) },
      given({ role: "assistant", content: content("Read it.", 4), reasoning_content: reasoning[1] }),
      { role: "user", content: content("Second", 5) },
      calling(1, reasoning[2]),
      { role: "tool", tool_call_id: callIds[1], content: content("one", 7) },
    ],
    tools: [{ type: "function", function: { name: "read", description: "Reads.", parameters } }],
    tool_choice: "auto",
    stream: true,
    ...settings,
  };
}

/** Only the fields that exist. */
const given = (fields: Record<string, unknown>) =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));

const ownThoughts = [undefined, "earlier thought", "own thought"];
const eachCall = [" ", undefined, "own thought"];

interface Row {
  ref: ModelRef;
  url: string;
  settings: Record<string, unknown>;
  more: Partial<Differences>;
}

const row = (
  provider: string,
  model: string,
  variant: string | undefined,
  url: string,
  settings: Record<string, unknown>,
  more: Partial<Differences> = {},
): Row => ({
  ref: { provider, model, ...(variant !== undefined && { variant }) },
  url: `${url}/chat/completions`,
  settings,
  more,
});

const marked = [true, false, false, false, false, true, false, true];

/** Each preset with the request that its provider documents. */
const rows: Row[] = [
  row("openai", "gpt-5", "high", "https://api.openai.com/v1", {
    ...cacheKey,
    max_completion_tokens: 32_000,
    reasoning_effort: "high",
    ...usage,
  }),
  // Supports tools only without reasoning, since GPT-5.4.
  row("openai", "gpt-5.6-sol", undefined, "https://api.openai.com/v1", {
    ...cacheKey,
    max_completion_tokens: 32_000,
    reasoning_effort: "none",
    ...usage,
  }),
  // Has no effort "none"; OpenAI documents that it supports tools only over another API.
  row("openai", "gpt-6.1-sol", undefined, "https://api.openai.com/v1", {
    ...cacheKey,
    max_completion_tokens: 32_000,
    reasoning_effort: "medium",
    ...usage,
  }),
  row("openai", "gpt-6-luna", undefined, "https://api.openai.com/v1", {
    ...cacheKey,
    max_completion_tokens: 32_000,
    reasoning_effort: "none",
    ...usage,
  }),
  row("openai", "gpt-4.1", undefined, "https://api.openai.com/v1", {
    ...cacheKey,
    max_completion_tokens: 32_000,
    ...sampled,
    ...usage,
  }),
  row("anthropic", "claude-sonnet-5-5", undefined, "https://api.anthropic.com/v1", {
    max_tokens: 32_000,
    ...usage,
  }),
  // Only one of the two sampling parameters, since Opus 4.1.
  row("anthropic", "claude-sonnet-4-5", undefined, "https://api.anthropic.com/v1", {
    max_tokens: 32_000,
    temperature: 0.3,
    ...usage,
  }),
  row(
    "google",
    "gemini-3.8-flash",
    "low",
    "https://generativelanguage.googleapis.com/v1beta/openai",
    { max_tokens: 32_000, reasoning_effort: "low", ...sampled, ...usage },
    {
      parameters: { type: "object", properties: { path: { type: "string", nullable: true } } },
      signatures: [
        { google: { thought_signature: "skip_thought_signature_validator" } },
        { google: { thought_signature: "signature" } },
      ],
    },
  ),
  row(
    "openrouter",
    "anthropic/claude-haiku-4.5",
    "high",
    "https://openrouter.ai/api/v1",
    { max_tokens: 32_000, reasoning: { effort: "high" }, temperature: 0.3, ...usage },
    { marks: marked, reasoning: [undefined, "earlier thought", undefined], details: [undefined, [detail]] },
  ),
  row(
    "openrouter",
    "openai/gpt-5",
    undefined,
    "https://openrouter.ai/api/v1",
    { max_tokens: 32_000, reasoning: { effort: "medium" }, ...usage },
    { details: [undefined, [detail]] },
  ),
  row(
    "deepseek",
    "deepseek-flash",
    "max",
    "https://api.deepseek.com",
    { max_tokens: 32_000, reasoning_effort: "max", ...usage },
    { reasoning: eachCall },
  ),
  row(
    "deepseek",
    "deepseek-v4-pro",
    "none",
    "https://api.deepseek.com",
    { max_tokens: 32_000, thinking: { type: "disabled" }, ...usage },
    { reasoning: eachCall },
  ),
  row(
    "mistral",
    "mistral-medium-latest",
    "high",
    "https://api.mistral.ai/v1",
    { ...cacheKey, reasoning_effort: "high", ...sampled },
    { callIds: [expect.stringMatching(/^[A-Za-z0-9]{9}$/), "abc123XYZ"] },
  ),
  row("groq", "openai/gpt-oss-120b", "low", "https://api.groq.com/openai/v1", {
    max_completion_tokens: 32_000,
    reasoning_effort: "low",
    ...sampled,
    ...usage,
  }),
  row(
    "xai",
    "grok-4.7",
    "low",
    "https://api.x.ai/v1",
    { reasoning_effort: "low", ...sampled, ...usage },
    { reasoning: ownThoughts },
  ),
  row(
    "togetherai",
    "zai-org/GLM-5.3",
    "low",
    "https://api.together.xyz/v1",
    { max_tokens: 32_000, reasoning_effort: "low", ...sampled, ...usage },
    { reasoning: ownThoughts },
  ),
  row(
    "fireworks-ai",
    "accounts/fireworks/models/glm-5p3",
    "max",
    "https://api.fireworks.ai/inference/v1",
    { max_tokens: 32_000, reasoning_effort: "max", ...sampled, ...usage },
    { reasoning: ownThoughts },
  ),
  // Rejects reasoning_content, even if the model wants it elsewhere.
  row("cerebras", "zai-glm-4.7", undefined, "https://api.cerebras.ai/v1", {
    max_completion_tokens: 32_000,
    ...sampled,
    ...usage,
  }),
  row(
    "moonshotai",
    "kimi-k2.6",
    "none",
    "https://api.moonshot.ai/v1",
    { thinking: { type: "disabled" }, ...usage },
    { reasoning: eachCall, parameters: moonshotSchema },
  ),
  row(
    "moonshotai",
    "kimi-k3",
    "max",
    "https://api.moonshot.ai/v1",
    { reasoning_effort: "max", ...usage },
    { reasoning: eachCall, parameters: moonshotSchema },
  ),
  row(
    "zai",
    "glm-4.7",
    "high",
    "https://api.z.ai/api/paas/v4",
    { max_tokens: 32_000, thinking: { type: "enabled" }, ...sampled, ...usage },
    { reasoning: ownThoughts },
  ),
  row(
    "zai",
    "glm-5.3",
    "max",
    "https://api.z.ai/api/paas/v4",
    { max_tokens: 32_000, reasoning_effort: "max", ...sampled, ...usage },
    { reasoning: ownThoughts },
  ),
  row(
    "alibaba",
    "qwen3-coder-plus",
    undefined,
    "https://dashscope-intl.aliyuncs.com/compatible-mode/v1",
    { max_tokens: 32_000, parallel_tool_calls: true, ...sampled, ...usage },
    { marks: marked },
  ),
  row("github-models", "openai/gpt-4.1", undefined, "https://models.github.ai/inference", {
    max_tokens: 32_000,
    ...sampled,
    ...usage,
  }),
  row(
    "ollama",
    "qwen3:8b",
    "low",
    "http://localhost:11434/v1",
    {
      reasoning_effort: "low",
      ...sampled,
      ...usage,
    },
    { reasoning: ownThoughts },
  ),
  row(
    "lmstudio",
    "qwen/qwen3",
    undefined,
    "http://localhost:1234/v1",
    { ...sampled, ...usage },
    { reasoning: ownThoughts },
  ),
  row("llamacpp", "local", undefined, "http://localhost:8080/v1", { ...sampled, ...usage }),
  row(
    "vllm",
    "Qwen/Qwen3",
    undefined,
    "http://localhost:8000/v1",
    { ...sampled, ...usage },
    { reasoning: ownThoughts },
  ),
];

describe("each preset's request is what its provider documents", () => {
  test("every preset has an expected request", () => {
    expect(new Set(rows.map(({ ref }) => ref.provider))).toEqual(new Set(presets.map(({ id }) => id)));
  });

  const docsOf = ({ ref }: Row) => presets.find(({ id }) => id === ref.provider)?.docs;

  test.each(rows.map((row): [string, Row] => [`${row.ref.provider}/${row.ref.model}, ${docsOf(row)}`, row]))(
    "%s",
    async (_name, { ref, url, settings, more }) => {
      expect(await requestOf(ref, new URL(url).hostname)).toEqual({
        url,
        key: "Bearer the-key",
        body: bodyOf(ref.model, settings, { ...usual, ...more }),
      });
    },
  );
});

test("usage is not requested if the configuration says that the server rejects it", async () => {
  const config: Config = {
    provider: { mine: { options: { baseURL: server.url, includeUsage: false }, models: { scripted: {} } } },
  };
  const models = openModels({ config, env: {}, credentials: {}, catalog, log: silentLog });
  const model = models.findByName("mine/scripted");
  if (model === undefined) throw new Error("no model");
  const signal = new AbortController().signal;
  const request = { model, system: [], messages: [requested("Hi")], tools: [], signal };
  const end = await models.call(request, () => undefined);
  const body = server.requests.at(-1)?.body;
  expect(isObject(body) && "stream_options" in body).toBe(false);
  expect(end.type).toBe("finish");
});
