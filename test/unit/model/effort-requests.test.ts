import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { silentLog } from "../../../src/base/log.ts";
import type { Config, ProviderConfig } from "../../../src/config/schema.ts";
import { newMessageId, newPartId, newSessionId } from "../../../src/message/ids.ts";
import type { Message } from "../../../src/message/message.ts";
import { type Send, sendHttp } from "../../../src/model/http.ts";
import { openModels } from "../../../src/model/providers/providers.ts";
import { toObject } from "../../support/json.ts";
import { type ModelServer, startModelServer } from "../../support/model/model-server.ts";

let server: ModelServer;
beforeAll(async () => {
  server = await startModelServer();
  server.otherwise("Fine.");
});
afterAll(() => server.close());

const sessionId = newSessionId();
const question = (): Message => {
  const id = newMessageId();
  return {
    info: { id, sessionId, role: "user", time: { created: 1 }, agent: "build" },
    parts: [{ id: newPartId(), type: "text", text: "Hi" }],
  };
};

/** Sends a request with a tool to the model of this name, and returns what its provider would receive. */
async function requestOf(
  name: string,
  { options, ...provider }: ProviderConfig = {},
  agentOptions?: Record<string, unknown>,
) {
  let address = "";
  const forward: Send = (to, request) => {
    address = to.href;
    return sendHttp(new URL(`${server.url}/${to.pathname.replace(/^.*\/v1\//, "")}`), request);
  };
  const id = name.slice(0, name.indexOf("/"));
  const config: Config = { provider: { [id]: { ...provider, options: { apiKey: "the-key", ...options } } } };
  const models = openModels({ config, env: {}, credentials: {}, log: silentLog, send: forward });
  const choice = models.chooseByName(name);
  if (choice.outcome === "none") throw new Error(choice.error.message);
  const end = await models.call(
    {
      model: choice.model,
      system: ["Be kind."],
      messages: [question()],
      tools: [{ name: "read", description: "Reads.", schema: { type: "object", properties: {} } }],
      ...(agentOptions && { options: agentOptions }),
      signal: new AbortController().signal,
    },
    () => undefined,
  );
  expect(end).toMatchObject({ type: "finish" });
  const sent = server.requests.at(-1);
  return { address, headers: sent?.headers ?? {}, body: toObject(sent?.body) };
}

describe("at OpenAI", () => {
  test.each([
    ["openai/gpt-5", "medium"],
    ["openai/gpt-5:high", "high"],
    ["openai/gpt-5.1", "medium"],
    ["openai/gpt-5.6-sol", "medium"],
    ["openai/gpt-5.6-sol:none", "none"],
    ["openai/gpt-6-astra:max", "max"],
    ["openai/gpt-4.1", undefined],
  ])("%s receives the effort %s over Responses", async (name, effort) => {
    const { address, headers, body } = await requestOf(name);
    expect(address).toBe("https://api.openai.com/v1/responses");
    expect(headers.authorization).toBe("Bearer the-key");
    expect(toObject(body.reasoning ?? {}).effort).toBe(effort);
    expect(body.tools).toHaveLength(1);
  });

  test("the user's choice precedes options of model and agent, and these the default", async () => {
    const effort = async (...args: Parameters<typeof requestOf>) =>
      toObject((await requestOf(...args)).body.reasoning).effort;
    const low = { models: { "gpt-5": { options: { reasoningEffort: "low" } } } };
    expect(await effort("openai/gpt-5", low)).toBe("low");
    expect(await effort("openai/gpt-5", low, { reasoning_effort: "minimal" })).toBe("minimal");
    expect(await effort("openai/gpt-5", {}, { reasoning: { effort: "minimal" } })).toBe("minimal");
    expect(await effort("openai/gpt-5:high", low, { reasoning_effort: "minimal" })).toBe("high");
  });

  test("chat completions are requested without thinking if tools exclude it", async () => {
    const { address, body } = await requestOf("openai/gpt-5.6-sol", { api: "chat" });
    expect(address).toBe("https://api.openai.com/v1/chat/completions");
    expect(body.reasoning_effort).toBe("none");
  });
});

describe("at Anthropic", () => {
  test.each([
    ["anthropic/claude-opus-5-5", { type: "adaptive" }, "medium"],
    ["anthropic/claude-opus-5-5:max", { type: "adaptive" }, "max"],
    ["anthropic/claude-haiku-5-5:none", { type: "disabled" }, undefined],
    ["anthropic/claude-sonnet-4-5:high", { type: "enabled" }, undefined],
  ])("%s receives %j and the effort %s over Messages", async (name, thinking, effort) => {
    const { address, headers, body } = await requestOf(name);
    expect(address).toBe("https://api.anthropic.com/v1/messages");
    expect([headers["x-api-key"], headers["anthropic-version"]]).toEqual(["the-key", "2023-06-01"]);
    expect(body.thinking).toMatchObject(thinking);
    expect(toObject(body.output_config ?? {}).effort).toBe(effort);
  });

  test.each([
    ["anthropic/claude-sonnet-4-5:high", 8_000, 4_800],
    ["anthropic/claude-sonnet-4-5:low", 8_000, 1_024],
    ["anthropic/claude-sonnet-4-5:medium", 2_500, 1_024],
    ["anthropic/claude-sonnet-4-5:high", 2_000, undefined],
    ["anthropic/claude-sonnet-4-5:none", 8_000, undefined],
  ])("%s thinks within an output limit of %d tokens", async (name, output, budget) => {
    const models = { "claude-sonnet-4-5": { limit: { context: 200_000, output } } };
    const { body } = await requestOf(name, { models });
    expect(body.max_tokens).toBe(output);
    expect(toObject(body.thinking ?? {}).budget_tokens).toBe(budget);
  });
});

describe("at a gateway", () => {
  const gateway = { options: { baseURL: "https://ai.example.com/v1" } };

  test("a model receives no effort over chat completions unless one is chosen", async () => {
    const usual = await requestOf("work/claude-opus-4.5", gateway);
    expect(usual.address).toBe("https://ai.example.com/v1/chat/completions");
    expect(usual.body).not.toHaveProperty("reasoning_effort");
    expect((await requestOf("work/claude-opus-4.5:high", gateway)).body.reasoning_effort).toBe("high");
  });

  test("the configured API of a provider or model is used", async () => {
    const address = async (more: ProviderConfig) =>
      (await requestOf("work/gpt-5.5", { ...gateway, ...more })).address;
    expect(await address({ api: "responses" })).toBe("https://ai.example.com/v1/responses");
    expect(await address({ npm: "@ai-sdk/openai" })).toMatch(/\/responses$/);
    expect(await address({ npm: "@ai-sdk/openai", api: "chat" })).toMatch(/\/completions$/);
    expect(await address({ models: { "gpt-5.5": { api: "responses" } } })).toMatch(/\/responses$/);
    expect(await address({ api: "responses", models: { "gpt-5.5": { api: "chat" } } })).toMatch(
      /\/completions$/,
    );
  });
});
