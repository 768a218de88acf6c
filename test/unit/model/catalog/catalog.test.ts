import { readFile } from "node:fs/promises";
import { describe, expect, test } from "vitest";
import { silentLog } from "../../../../src/base/log.ts";
import { type Api, isApi } from "../../../../src/config/api.ts";
import type { Config } from "../../../../src/config/schema.ts";
import {
  formatModelRef,
  keyVariables,
  parseModelRef,
  presets,
} from "../../../../src/model/catalog/catalog.ts";
import { nearestEffort } from "../../../../src/model/catalog/efforts.ts";
import type { Credentials } from "../../../../src/model/keys/credentials.ts";
import { Catalog, catalogSchema, type KnownModel } from "../../../../src/model/catalog/known-models.ts";
import { openModels } from "../../../../src/model/providers/providers.ts";
import { costOf } from "../../../../src/model/answer/usage.ts";
import { collectEvents } from "../../../support/collect-events.ts";

const catalog = new Catalog(silentLog);
type Env = Record<string, string>;
const open = (env: Env = {}, config: Config = {}, credentials: Credentials = {}) =>
  openModels({ env, config, credentials, catalog, log: silentLog });
const ids = (models: ReturnType<typeof open>) => models.providers().map(({ id }) => id);
const chosen = (models: ReturnType<typeof open>, wishes?: Parameters<typeof models.defaultModel>[0]) => {
  const choice = models.defaultModel(wishes);
  return choice.outcome === "found" ? formatModelRef(choice.model.ref) : choice.error;
};

test("presets have unique ids, an address, a source of a key, and a listed default", () => {
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

test("the catalog is dated, names the page of each figure, and matches its presets", async () => {
  const path = new URL("../../../../catalog/models.json", import.meta.url);
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
      const { variants = [], defaultEffort } = model;
      expect(variants).toEqual(vendorEfforts.filter((effort) => variants.includes(effort)));
      if (defaultEffort !== undefined) expect(variants).toContain(defaultEffort);
    }
  }
});

const vendorEfforts = ["none", "minimal", "low", "medium", "high", "xhigh", "max"];

test("presets name the page of each fact about APIs and caches", () => {
  const kinds = ["automatic", "marks", "none"];
  for (const { api, cache } of presets) {
    if (api !== undefined) expect([isApi(api.default), URL.canParse(api.source)]).toEqual([true, true]);
    if (cache === undefined) continue;
    const { source, ...byApi } = cache;
    expect(URL.canParse(source)).toBe(true);
    for (const [name, kind] of Object.entries(byApi))
      expect([isApi(name), kinds.includes(kind)]).toEqual([true, true]);
  }
});

const isCollection = (page: string) => page.startsWith("https://github.com/anomalyco/models.dev");

function figuresOf(model: KnownModel): string[] {
  const { context, input, output, cost, takes, temperature, tools } = model;
  const { reasoning, variants, defaultEffort, api } = model;
  const has = (...figures: unknown[]) => figures.some((figure) => figure !== undefined);
  return [
    ...(has(context, input, output) ? ["limits"] : []),
    ...(has(cost) ? ["cost"] : []),
    ...(has(takes, temperature, tools) ? ["abilities"] : []),
    ...(has(reasoning, variants, defaultEffort) ? ["efforts"] : []),
    ...(has(api) ? ["api"] : []),
  ];
}

test("loads the catalog only for a model of a known provider, and works without it", () => {
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

test("a provider whose key has other uses counts only if it is named", () => {
  const env = { GITHUB_TOKEN: "t" };
  expect(ids(open(env))).toEqual([]);
  expect(ids(open(env, { provider: { "github-models": {} } }))).toEqual(["github-models"]);
  expect(ids(open(env, { model: "github-models/openai/gpt-4.1" }))).toEqual(["github-models"]);
  expect(chosen(open(env, { model: "groq/x" }))).toMatchObject({ code: "no-model" });
});

test("a long input has a higher price above its threshold", () => {
  const model = open({ XAI_API_KEY: "a" }).findByName("xai/grok-4.7");
  const cost = (input: number, read: number) =>
    model && costOf(model, { input, output: 1_000_000, reasoning: 0, cache: { read, write: 0 } });
  expect(cost(100_000, 100_000)).toBeCloseTo(0.2 + 0.05 + 6);
  expect(cost(100_000, 100_001)).toBeCloseTo(0.4 + 0.1 + 12);
});

test("configured variants are added to the known ones or remove them", () => {
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
])("the name %s is parsed and formatted to the same", (text, ref) => {
  expect(parseModelRef(text)).toEqual(ref);
  expect(formatModelRef(ref)).toBe(text);
});

test.each(["gpt-5", "/x", "openai/", ""])("%j is not a model", (text) => {
  expect(parseModelRef(text)).toBeUndefined();
});

test("without key, configuration or address no provider works, and the error helps", () => {
  const models = open();
  expect(models.list()).toEqual([]);
  expect(chosen(models)).toMatchObject({ code: "no-model", retryable: false });
  expect(chosen(models)).toMatchObject({ message: expect.stringContaining("fairlead setup") });
  expect(chosen(models)).toMatchObject({ message: expect.stringContaining("OPENAI_BASE_URL") });
});

test("a provider with an empty or invalid address is reported and not used elsewhere", () => {
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
  const where = (place: string) => `"fairlead config show ${place}" names the file that sets it.`;
  const reply = (name: string) => chosen(models, { configured: name });
  expect(chosen(models)).toMatchObject({
    message: `No model can be used: provider.mine.options.baseURL ${empty} ${where("provider.mine.options.baseURL")}`,
  });
  for (const id of ["mine", "openai"])
    expect(reply(`${id}/m`)).toMatchObject({
      message: `The model ${id}/m cannot be used: provider.${id}.options.baseURL ${empty} ${where(`provider.${id}.options.baseURL`)}`,
    });
  expect(reply("old/m")).toMatchObject({
    message: `The model old/m cannot be used: provider.old.api is not a valid address; it must begin with http:// or https:// and a host. ${where("provider.old.api")}`,
  });
  expect(reply("bare/m")).toMatchObject({
    message:
      "The model bare/m cannot be used: the provider bare has no address in the configuration; set its options.baseURL.",
  });
  expect(reply("xai/m")).toMatchObject({ message: expect.stringContaining("options.apiKey is empty.") });
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

test("local servers count if a setting names them", () => {
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

test("providers can be disabled and limited", () => {
  const env = { OPENAI_API_KEY: "a", GROQ_API_KEY: "b", XAI_API_KEY: "c" };
  expect(ids(open(env, { disabled_providers: ["groq"] }))).toEqual(["openai", "xai"]);
  expect(ids(open(env, { enabled_providers: ["xai"] }))).toEqual(["xai"]);
  expect(chosen(open(env, { disabled_providers: ["groq"], model: "groq/x" }))).toMatchObject({
    message: expect.stringContaining("switched off"),
  });
});

test("another OpenAI address takes any model, needs no key, lists no known models", () => {
  const models = open({ OPENAI_BASE_URL: "http://localhost:9/v1", OPENAI_MODEL: "my/model" });
  expect(models.list().map(({ ref }) => formatModelRef(ref))).toEqual(["openai/my/model"]);
  expect(chosen(models)).toBe("openai/my/model");
  const named = open({ OPENAI_BASE_URL: "http://localhost:9/v1", FAIRLEAD_MODEL: "org/other" });
  expect(chosen(named)).toBe("openai/org/other");
  expect(chosen(open({ OPENAI_BASE_URL: "http://localhost:9/v1" }))).toMatchObject({
    message: expect.stringContaining("among those of openai"),
  });
  expect(named.find({ provider: "openai", model: "gpt-5-own" })?.limit).toEqual({});
});

test.each([
  ["127.0.0.1:8000/v1", "http://127.0.0.1:8000/v1"],
  [" localhost:8000/v1\n", "http://localhost:8000/v1"],
  ["http://localhost:8000/v1", "http://localhost:8000/v1"],
  ["llm.example.com/v1", "llm.example.com/v1"],
  ["'https://llm.example.com/v1'", "'https://llm.example.com/v1'"],
])("the address %j in a variable is %j and fails no session", (given, used) => {
  const models = open({ OPENAI_BASE_URL: given, OPENAI_MODEL: "my-model" });
  expect(chosen(models)).toBe("openai/my-model");
  expect(models.providers().map(({ baseURL }) => baseURL)).toEqual([used]);
});

describe("a gateway with its own address", () => {
  const config: Config = { provider: { work: { options: { baseURL: "https://ai.example.com/v1" } } } };
  const find = (model: string, more: Config = {}) =>
    open({}, { ...config, ...more }).find({ provider: "work", model });

  test.each([
    ["gpt-5.5", "gpt-5.5"],
    ["openai/gpt-5.5", "gpt-5.5"],
    ["claude-opus-4.5", "claude-opus-4-5"],
    ["anthropic/claude-opus-4.5", "claude-opus-4-5"],
    ["us.anthropic.claude-opus-4-5-20251101-v1:0", "claude-opus-4-5"],
    ["claude-haiku-4-5@20251001", "claude-haiku-4-5"],
    ["gemini/gemini-2.5-pro", "gemini-2.5-pro"],
  ])("recognizes %s as %s", (id, vendorId) => {
    const vendor = ["openai", "anthropic", "google"]
      .flatMap((provider) => catalog.modelsOf(provider))
      .find((model) => model.id === vendorId);
    const model = find(id);
    expect(model?.name).toBe(vendor?.name);
    expect(model?.limit).toMatchObject({ context: vendor?.context, output: vendor?.output });
    expect(model?.variants).toEqual(vendor?.variants ?? []);
    expect([model?.ref.model, model?.api]).toEqual([id, "chat"]);
  });

  test.each(["gpt-5.5-ours", "my-claude", "qwen3:30b", "gpt-oss:20b"])("has no facts about %s", (id) => {
    expect(find(id)?.limit).toEqual({});
  });

  test("uses the configured API and leaves the effort to the server over chat", () => {
    expect(find("claude-opus-4.5")?.defaultEffort).toBeUndefined();
    const { options } = config.provider?.["work"] ?? {};
    const speaks = (api: Api) => find("claude-opus-4.5", { provider: { work: { api, options } } });
    expect([speaks("messages")?.api, speaks("messages")?.defaultEffort]).toEqual(["messages", "medium"]);
    expect([speaks("chat")?.api, speaks("chat")?.defaultEffort]).toEqual(["chat", undefined]);
  });

  test("is overridden by the server's list and the configuration", () => {
    const models = { "gpt-5.5": { limit: { context: 100_000 }, name: "Ours" } };
    const { options } = config.provider?.["work"] ?? {};
    const model = find("gpt-5.5", { provider: { work: { options, models } } });
    expect([model?.limit.context, model?.name]).toEqual([100_000, "Ours"]);
  });
});

describe("the effort in a model's name", () => {
  const models = {
    coder: { variants: { high: {}, deep: {} } },
    "qwen3:30b": {},
    "odd:high": {},
    odd: { variants: { high: {} } },
  };
  const config: Config = { provider: { mine: { options: { baseURL: "http://gpu/v1" }, models } } };
  const env = { OPENAI_API_KEY: "a", OPENROUTER_API_KEY: "b" };
  const refOf = (name: string) => {
    const choice = open(env, config).chooseByName(name);
    return choice.outcome === "found" ? choice.model.ref : choice.error.message;
  };

  test.each([
    ["openai/gpt-5:high", { provider: "openai", model: "gpt-5", variant: "high" }],
    ["mine/coder:deep", { provider: "mine", model: "coder", variant: "deep" }],
    ["mine/qwen3:30b", { provider: "mine", model: "qwen3:30b" }],
    ["mine/odd:high", { provider: "mine", model: "odd:high" }],
    ["mine/new:free", { provider: "mine", model: "new:free" }],
    ["mine/odd:tag", { provider: "mine", model: "odd:tag" }],
    ["mine/coder:30b", { provider: "mine", model: "coder:30b" }],
    ["openrouter/openai/gpt-5:free", { provider: "openrouter", model: "openai/gpt-5:free" }],
    ["mine/new:high", { provider: "mine", model: "new", variant: "high" }],
  ])("of %s counts only if the model has it", (name, ref) => {
    expect(refOf(name)).toEqual(ref);
    expect(chosen(open({ ...env, FAIRLEAD_MODEL: name }, config))).toBe(formatModelRef(ref));
    expect(chosen(open(env, { ...config, model: name }))).toBe(formatModelRef(ref));
  });

  test("is refused with the efforts of the model", () => {
    const message =
      'The model openai/gpt-5 has no effort "max"; it has minimal, low, medium, high. Write openai/gpt-5 without ":max" or with another effort.';
    expect(refOf("openai/gpt-5:max")).toBe(message);
    expect(chosen(open({ ...env, FAIRLEAD_MODEL: "openai/gpt-5:max" }, config))).toMatchObject({ message });
    expect(refOf("openai/gpt-5:deep")).toContain('has no effort "deep"; it has minimal, low, medium, high.');
    const unknown = 'The model mine/coder has no effort "huge"; it has high, deep.';
    expect(refOf("mine/coder:huge")).toContain(unknown);
    expect(chosen(open({ ...env, FAIRLEAD_MODEL: "mine/coder:huge" }, config))).toMatchObject({
      message: expect.stringContaining(unknown),
    });
    expect(refOf("mine/qwen3:30b:high")).toContain("The model mine/qwen3:30b has no efforts");
  });

  test("is not listed as part of the model that an environment variable names", () => {
    const listed = open({ ...env, FAIRLEAD_MODEL: "mine/coder:deep" }, config).list();
    expect(listed.map(({ ref }) => ref.model)).not.toContain("coder:deep");
  });
});

test.each([
  ["xhigh", ["low", "medium", "high"], "high"],
  ["medium", ["low", "high", "max"], "low"],
  ["low", ["none", "high"], "high"],
  ["none", ["low", "high"], "low"],
  ["none", ["none", "high"], "none"],
  ["high", [], undefined],
  ["deep", ["low", "high"], undefined],
])("the nearest effort to %s among %j is %s", (effort, variants, nearest) => {
  expect(nearestEffort(variants, effort)).toBe(nearest);
});

test("a thinking model has a default effort unless its options say how much it thinks", () => {
  const config = (options: Record<string, unknown>): Config => ({
    provider: { openai: { models: { "gpt-5.1": { options } } } },
  });
  const effort = (name: string, more?: Config) =>
    open({ OPENAI_API_KEY: "a", DEEPSEEK_API_KEY: "b" }, more).findByName(name)?.defaultEffort;
  expect(effort("openai/gpt-5.1")).toBe("medium");
  expect(effort("openai/gpt-5.1", config({ seed: 7 }))).toBe("medium");
  expect(effort("openai/gpt-5.1", config({ reasoningEffort: "high" }))).toBeUndefined();
  expect(effort("openai/gpt-4.1")).toBeUndefined();
  expect(effort("deepseek/deepseek-flash")).toBeUndefined();
});

test("over chat completions OpenAI's newer models and Claude have no efforts", () => {
  const chat: Config = { provider: { openai: { api: "chat" }, anthropic: { api: "chat" } } };
  const models = open({ OPENAI_API_KEY: "a", ANTHROPIC_API_KEY: "b" }, chat);
  for (const name of ["openai/gpt-5.5", "anthropic/claude-opus-5-5"])
    expect(models.findByName(name)).toMatchObject({
      variants: [],
      lostOverChat: ["thinking"],
      abilities: { reasoning: false, tools: true },
    });
  expect(models.findByName("openai/gpt-6.1-sol")).toMatchObject({
    lostOverChat: ["tools"],
    abilities: { tools: false },
  });
});

test("the default is the named model, then the last used, then the only provider's", () => {
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

test("a named model that cannot be used is an error, without a replacement", () => {
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

test("configuration describes models and overrides the catalog", () => {
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
      family: "open",
      toolSet: "all",
      editsBy: "replacement",
      limit: { context: 1_000, output: 100 },
      cost: { input: 1, output: 2, cacheRead: 0.5 },
      abilities: { tools: false, reasoning: true, images: true, pdf: false, audio: false, temperature: true },
      variants: ["deep"],
    },
  ]);
  expect(chosen(models)).toBe("mine/big");
});

test("recognizes family and edit tools by name, and computes cost by tokens", () => {
  const models = open({ OPENROUTER_API_KEY: "a" });
  const family = (model: string) => models.find({ provider: "openrouter", model })?.family;
  expect(
    ["anthropic/claude-x", "openai/gpt-9", "openai/gpt-9-codex", "google/gemini-9", "qwen/q"].map(family),
  ).toEqual(["claude", "gpt", "codex", "gemini", "open"]);
  const editsBy = (model: string) => models.find({ provider: "openrouter", model })?.editsBy;
  expect(["openai/gpt-9", "openai/gpt-9-codex", "openai/o3", "qwen/q"].map(editsBy)).toEqual([
    "patch",
    "patch",
    "patch",
    "replacement",
  ]);
  const older = ["openai/gpt-4o", "openai/gpt-4.1", "openai/chatgpt-4o-latest", "openai/gpt-oss-120b"];
  expect(older.map(family)).toEqual(["gpt", "open", "gpt", "open"]);
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

test("a request to a model whose provider cannot be used fails as a value", async () => {
  const model = open({ OPENAI_API_KEY: "a" }).findByName("openai/gpt-5");
  if (model === undefined) throw new Error("no model");
  const request = { model, system: [], messages: [], tools: [], signal: new AbortController().signal };
  expect(await collectEvents((take) => open().call(request, take))).toMatchObject([
    { type: "failed", error: { code: "no-model" } },
  ]);
});
