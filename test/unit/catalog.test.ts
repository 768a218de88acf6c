import { readFile } from "node:fs/promises";
import { expect, test } from "vitest";
import { silentLog } from "../../src/base/log.ts";
import type { Config } from "../../src/config/schema.ts";
import { formatModelRef, keyVariables, parseModelRef, presets } from "../../src/model/catalog/catalog.ts";
import type { Credentials } from "../../src/model/keys/credentials.ts";
import { Catalog, catalogSchema, type KnownModel } from "../../src/model/catalog/known-models.ts";
import { openModels } from "../../src/model/providers/providers.ts";
import { costOf } from "../../src/model/answer/usage.ts";
import { told } from "../support/told.ts";

const catalog = new Catalog(silentLog);
type Env = Record<string, string>;
const open = (env: Env = {}, config: Config = {}, credentials: Credentials = {}) =>
  openModels({ env, config, credentials, catalog, log: silentLog });
const ids = (models: ReturnType<typeof open>) => models.providers().map(({ id }) => id);
const chosen = (models: ReturnType<typeof open>, wishes?: Parameters<typeof models.defaultModel>[0]) => {
  const choice = models.defaultModel(wishes);
  return choice.outcome === "found" ? formatModelRef(choice.model.ref) : choice.error;
};

test("presets have unique ids, an address, a way to a key, and a default among their models", () => {
  expect(new Set(presets.map(({ id }) => id)).size).toBe(presets.length);
  for (const preset of presets) {
    expect(new URL(preset.baseURL).protocol).toBe(preset.local ? "http:" : "https:");
    expect(preset.keyVariables.length).toBeGreaterThan(0);
    const known = catalog.modelsOf(preset.id).map(({ id }) => id);
    if (!preset.local) expect(known).toContain(preset.defaultModel);
  }
  expect(keyVariables).toEqual(
    expect.arrayContaining(["OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY"]),
  );
});

test("the catalogue is dated, names the page of each figure, and fits to its presets", async () => {
  const path = new URL("../../catalog/models.json", import.meta.url);
  const file = catalogSchema.parse(JSON.parse(await readFile(path, "utf8")));
  expect(Object.keys(file.models)).toEqual(presets.filter(({ local }) => !local).map(({ id }) => id));
  for (const models of Object.values(file.models)) {
    expect(new Set(models.map(({ id }) => id)).size).toBe(models.length);
    for (const model of models) {
      const { context = Infinity, input = 0, output = 0, cost, sources, unconfirmed = [] } = model;
      expect(Object.keys(sources).sort()).toEqual(figuresOf(model).sort());
      for (const [figure, page] of Object.entries(sources)) {
        expect(`${figure} of ${model.id}: ${isCollection(page)}`).toBe(
          `${figure} of ${model.id}: ${isCollection(page) && unconfirmed.some((one) => one === figure)}`,
        );
      }
      expect(Math.max(input, output)).toBeLessThanOrEqual(context);
      const steps = cost?.over?.map(({ tokens }) => tokens) ?? [];
      expect(steps).toEqual([...steps].sort((a, b) => a - b));
    }
  }
});

const isCollection = (page: string) => page.startsWith("https://github.com/anomalyco/models.dev");

function figuresOf(model: KnownModel): string[] {
  const { context, input, output, cost, takes, reasoning, temperature, tools, variants } = model;
  const has = (...figures: unknown[]) => figures.some((figure) => figure !== undefined);
  return [
    ...(has(context, input, output) ? ["limits"] : []),
    ...(has(cost) ? ["cost"] : []),
    ...(has(takes, reasoning, temperature, tools, variants) ? ["abilities"] : []),
  ];
}

test("the catalogue is read when a model of a known provider is asked for, and its loss is no end", () => {
  const errors: string[] = [];
  const log = { ...silentLog, error: (message: string) => errors.push(message) };
  const lost = new Catalog(log, "/nowhere/models.json");
  const config: Config = { provider: { mine: { options: { baseURL: "http://x/v1" }, models: { m: {} } } } };
  const models = openModels({ env: {}, config, credentials: {}, catalog: lost, log });
  expect(chosen(models)).toBe("mine/m");
  expect(errors).toEqual([]);
  const openai = openModels({
    env: { OPENAI_API_KEY: "a" },
    config: {},
    credentials: {},
    catalog: lost,
    log,
  });
  expect(openai.findByName("openai/gpt-5")?.limit).toEqual({});
  expect(openai.list()).toEqual([]);
  expect(errors).toEqual([expect.stringContaining("reinstall the program")]);
});

test("a provider whose key serves other ends counts only where it is named", () => {
  const env = { GITHUB_TOKEN: "t" };
  expect(ids(open(env))).toEqual([]);
  expect(ids(open(env, { provider: { "github-models": {} } }))).toEqual(["github-models"]);
  expect(ids(open(env, { model: "github-models/openai/gpt-4.1" }))).toEqual(["github-models"]);
  expect(chosen(open(env, { model: "groq/x" }))).toMatchObject({ code: "no-model" });
});

test("a long input costs what it costs from there on", () => {
  const model = open({ XAI_API_KEY: "a" }).findByName("xai/grok-4.7");
  const cost = (input: number, read: number) =>
    model && costOf(model, { input, output: 1_000_000, reasoning: 0, cache: { read, write: 0 } });
  expect(cost(100_000, 100_000)).toBeCloseTo(0.2 + 0.05 + 6);
  expect(cost(100_000, 100_001)).toBeCloseTo(0.4 + 0.1 + 12);
});

test("configured variants add to the known ones and take them away", () => {
  const variants = { deep: { reasoningEffort: "high" }, minimal: { disabled: true } };
  const config: Config = { provider: { openai: { models: { "gpt-5": { variants } } } } };
  expect(open({ OPENAI_API_KEY: "a" }, config).findByName("openai/gpt-5")?.variants).toEqual([
    "low",
    "medium",
    "high",
    "deep",
  ]);
});

test.each([
  ["openai/gpt-5", { provider: "openai", model: "gpt-5" }],
  ["openai/gpt-5:high", { provider: "openai", model: "gpt-5", variant: "high" }],
  ["openrouter/a/b:free", { provider: "openrouter", model: "a/b:free" }],
  ["ollama/qwen3:8b", { provider: "ollama", model: "qwen3:8b" }],
  ["ollama/gpt-oss:20b:low", { provider: "ollama", model: "gpt-oss:20b", variant: "low" }],
])("the name %s is read and written again", (text, ref) => {
  expect(parseModelRef(text)).toEqual(ref);
  expect(formatModelRef(ref)).toBe(text);
});

test.each(["gpt-5", "/x", "openai/", ""])("%j is no model", (text) => {
  expect(parseModelRef(text)).toBeUndefined();
});

test("without key, configuration or address no provider can be used, and the error says what to do", () => {
  const models = open();
  expect(models.list()).toEqual([]);
  expect(chosen(models)).toMatchObject({ code: "no-model", retryable: false });
  expect(chosen(models)).toMatchObject({ message: expect.stringContaining("fairlead setup") });
  expect(chosen(models)).toMatchObject({ message: expect.stringContaining("OPENAI_BASE_URL") });
});

test("a provider whose address is empty or none is named with what is wrong, and never asked at its usual address", () => {
  const key = { apiKey: "k" };
  const config: Config = {
    provider: {
      mine: { options: { baseURL: "", ...key } },
      openai: { options: { baseURL: " ", ...key } },
      old: { api: "localhost:80/v1", options: key },
      bare: { options: key },
      xai: { options: { apiKey: "" } },
    },
  };
  const models = open({}, config);
  expect(models.providers()).toEqual([]);
  const empty = "is empty; set the API address (https://…/v1) or the variable that it names, or remove it.";
  const where = (place: string) => `"fairlead config show ${place}" says in which file it stands.`;
  const said = (name: string) => chosen(models, { configured: name });
  expect(chosen(models)).toMatchObject({
    message: `No model can be used: provider.mine.options.baseURL ${empty} ${where("provider.mine.options.baseURL")}`,
  });
  for (const id of ["mine", "openai"])
    expect(said(`${id}/m`)).toMatchObject({
      message: `The model ${id}/m cannot be used: provider.${id}.options.baseURL ${empty} ${where(`provider.${id}.options.baseURL`)}`,
    });
  expect(said("old/m")).toMatchObject({
    message: `The model old/m cannot be used: provider.old.api is not a valid address; it must begin with http:// or https:// and a host. ${where("provider.old.api")}`,
  });
  expect(said("bare/m")).toMatchObject({
    message:
      "The model bare/m cannot be used: the provider bare has no address in the configuration; set its options.baseURL.",
  });
  expect(said("xai/m")).toMatchObject({ message: expect.stringContaining("options.apiKey is empty.") });
});

test("keys come from configuration, environment or the credentials file, in that order", () => {
  const config: Config = { provider: { groq: { options: { apiKey: "c" } } } };
  const models = open({ GROQ_API_KEY: "e", XAI_API_KEY: "e" }, config, {
    xai: { apiKey: "s" },
    mistral: { apiKey: "s" },
  });
  expect(models.providers().map(({ id, keyFrom }) => [id, keyFrom])).toEqual([
    ["mistral", "credentials.json"],
    ["groq", "configuration"],
    ["xai", "XAI_API_KEY"],
  ]);
  expect(JSON.stringify(models.providers())).not.toContain("apiKey");
});

test("local servers count where somebody pointed at them", () => {
  const config: Config = {
    provider: { lmstudio: { models: { "qwen/qwen3": { limit: { context: 32_768 } } } } },
  };
  const models = open({ OLLAMA_HOST: "0.0.0.0:11434" }, config);
  expect(models.providers().map(({ id, baseURL }) => [id, baseURL])).toEqual([
    ["ollama", "http://localhost:11434/v1"],
    ["lmstudio", "http://localhost:1234/v1"],
  ]);
  expect(models.find({ provider: "lmstudio", model: "qwen/qwen3" })?.limit.context).toBe(32_768);
  expect(models.find({ provider: "ollama", model: "anything:7b" })?.name).toBe("anything:7b");
});

test("providers can be switched off and limited", () => {
  const env = { OPENAI_API_KEY: "a", GROQ_API_KEY: "b", XAI_API_KEY: "c" };
  expect(ids(open(env, { disabled_providers: ["groq"] }))).toEqual(["openai", "xai"]);
  expect(ids(open(env, { enabled_providers: ["xai"] }))).toEqual(["xai"]);
  expect(chosen(open(env, { disabled_providers: ["groq"], model: "groq/x" }))).toMatchObject({
    message: expect.stringContaining("switched off"),
  });
});

test("another OpenAI address takes any model, needs no key and does not have the catalog's models", () => {
  const models = open({ OPENAI_BASE_URL: "http://localhost:9/v1", OPENAI_MODEL: "my/model" });
  expect(models.list().map(({ ref }) => formatModelRef(ref))).toEqual(["openai/my/model"]);
  expect(chosen(models)).toBe("openai/my/model");
  const named = open({ OPENAI_BASE_URL: "http://localhost:9/v1", FAIRLEAD_MODEL: "org/other" });
  expect(chosen(named)).toBe("openai/org/other");
  expect(chosen(open({ OPENAI_BASE_URL: "http://localhost:9/v1" }))).toMatchObject({
    message: expect.stringContaining("among those of openai"),
  });
  expect(named.find({ provider: "openai", model: "gpt-5" })?.limit).toEqual({});
});

test("the default is what was named, then the last used, then the only provider's own", () => {
  const openai = { OPENAI_API_KEY: "a" };
  const both = { ...openai, GROQ_API_KEY: "b" };
  const lastUsed = { provider: "groq", model: "openai/gpt-oss-20b" };
  expect(chosen(open(openai))).toBe("openai/gpt-5");
  expect(chosen(open(both))).toMatchObject({
    code: "no-model",
    message: expect.stringContaining("openai, groq"),
  });
  expect(chosen(open(both), { lastUsed })).toBe("groq/openai/gpt-oss-20b");
  expect(chosen(open(both, { model: "openai/gpt-5-mini" }), { lastUsed })).toBe("openai/gpt-5-mini");
  expect(chosen(open({ ...both, FAIRLEAD_MODEL: "groq/x" }, { model: "openai/gpt-5" }))).toBe("groq/x");
  expect(chosen(open(openai), { lastUsed })).toEqual({
    code: "no-model",
    message:
      'The model groq/openai/gpt-oss-20b cannot be used: Groq has no key. Run "fairlead setup" or set GROQ_API_KEY. It is the one last used in this project; choose another one in the editor, or set "model" in fairlead.json.',
    retryable: false,
  });
});

test("a named model that cannot be used is an error and nothing takes its place", () => {
  const env = { OPENAI_API_KEY: "a" };
  expect(chosen(open(env, { model: "anthropic/claude-opus-4-5" }))).toEqual({
    code: "no-model",
    message:
      'The model anthropic/claude-opus-4-5 cannot be used: Anthropic has no key. Run "fairlead setup" or set ANTHROPIC_API_KEY.',
    retryable: false,
  });
  expect(chosen(open(env, { model: "gpt-5" }))).toMatchObject({
    message: expect.stringContaining("provider/model"),
  });
  expect(chosen(open(env, { model: "mine/x" }))).toMatchObject({
    message: expect.stringContaining("baseURL"),
  });
});

test("configuration describes models and beats the catalog", () => {
  const models = open(
    {},
    {
      provider: {
        mine: {
          name: "Mine",
          options: { baseURL: "http://gpu:8000/v1" },
          models: {
            big: {
              name: "Big",
              limit: { context: 1_000, output: 100 },
              cost: { input: 1, output: 2, cache_read: 0.5 },
              modalities: { input: ["text", "image"] },
              tool_call: false,
              variants: { deep: { reasoningEffort: "high" } },
            },
          },
        },
      },
    },
  );
  expect(models.list()).toEqual([
    {
      ref: { provider: "mine", model: "big" },
      api: "chat",
      name: "Big",
      family: "other",
      editsBy: "replacement",
      limit: { context: 1_000, output: 100 },
      cost: { input: 1, output: 2, cacheRead: 0.5 },
      abilities: { tools: false, reasoning: true, images: true, pdf: false, audio: false, temperature: true },
      variants: ["deep"],
    },
  ]);
  expect(chosen(models)).toBe("mine/big");
});

test("tells family and edit tools by name, and cost by tokens", () => {
  const models = open({ OPENROUTER_API_KEY: "a" });
  const family = (model: string) => models.find({ provider: "openrouter", model })?.family;
  expect(
    ["anthropic/claude-x", "openai/gpt-9", "openai/gpt-9-codex", "google/gemini-9", "qwen/q"].map(family),
  ).toEqual(["claude", "gpt", "codex", "gemini", "other"]);
  const editsBy = (model: string) => models.find({ provider: "openrouter", model })?.editsBy;
  expect(["openai/gpt-9", "openai/gpt-9-codex", "openai/o3", "qwen/q"].map(editsBy)).toEqual([
    "patch",
    "patch",
    "patch",
    "replacement",
  ]);
  const older = ["openai/gpt-4o", "openai/gpt-4.1", "openai/chatgpt-4o-latest", "openai/gpt-oss-120b"];
  expect(older.map(family)).toEqual(["gpt", "gpt", "gpt", "other"]);
  expect(older.map(editsBy)).toEqual(Array(4).fill("replacement"));
  const model = models.findByName("openrouter/anthropic/claude-haiku-4.5");
  const tokens = {
    input: 1_000_000,
    output: 100_000,
    reasoning: 100_000,
    cache: { read: 1_000_000, write: 0 },
  };
  expect(model && models.costOf(model, tokens)).toBeCloseTo(1 + 1 + 0.1);
});

test("asking a model whose provider cannot be used fails as a value", async () => {
  const model = open({ OPENAI_API_KEY: "a" }).findByName("openai/gpt-5");
  if (model === undefined) throw new Error("no model");
  const request = { model, system: [], messages: [], tools: [], signal: new AbortController().signal };
  expect(await told((take) => open().call(request, take))).toMatchObject([
    { type: "failed", error: { code: "no-model" } },
  ]);
});
