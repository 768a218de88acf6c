import { expect, test } from "vitest";
import { describeModel } from "../../../../src/model/catalog/catalog.ts";
import { detectFamily, parseParameters } from "../../../../src/model/catalog/family.ts";
import { toKnownModel } from "../../../../src/model/catalog/listed-model.ts";

test.each([
  ["small", ["qwen3:8b", "qwen3-coder:30b", "qwen/qwen3-30b-a3b", "gpt-oss-20b", "llama-3.2-3b-instruct"]],
  ["small", ["gemma3n:e4b", "gemma3:latest", "deepseek-r1-distill-qwen-32b", "qwen2.5-coder-0.5b", "phi-4"]],
  [
    "open",
    ["qwen3-coder-480b-a35b", "qwen3-235b-a22b", "mixtral-8x7b", "llama-4-scout-17b-16e", "gpt-oss-120b"],
  ],
  [
    "open",
    ["glm-4.7", "kimi-k2.5", "deepseek-v3.2", "minimax-m2", "x-ai/grok-4", "openai/gpt-4.1", "gpt-oss"],
  ],
  ["gpt", ["gpt-5", "openai/gpt-6-mini", "o3", "gpt"]],
  ["claude", ["anthropic/claude-sonnet-5", "claude"]],
  ["codex", ["gpt-5.1-codex"]],
  ["gemini", ["models/gemini-3-pro"]],
])("the family %s has %j", (family, names) => {
  expect(names.map((name) => detectFamily(name))).toEqual(names.map(() => family));
});

test("the size that a local server reports counts if the name has none", () => {
  const entries = [
    { model: "mine:latest", name: "mine:latest", details: { parameter_size: "8.2B" } },
    { id: "mine", meta: { n_params: 8_190_735_360 } },
    { key: "mine", type: "llm", params_string: "7B" },
    { id: "mine", params_string: "70B" },
    { id: "mine" },
  ];
  const families = entries.map((entry) => {
    const known = toKnownModel(entry);
    return describeModel({ provider: "local", model: "mine" }, { known, api: "chat" }).family;
  });
  expect(families).toEqual(["small", "small", "small", "open", "open"]);
  expect(["567M", "8.2 B", "many", 0, undefined].map(parseParameters)).toEqual([
    567e6,
    8.2e9,
    undefined,
    undefined,
    undefined,
  ]);
});

test("the configuration chooses the family and the tools", () => {
  const describe = (config: { family?: string; tool_set?: "all" | "small" }) => {
    const facts = { known: undefined, api: "chat", config } as const;
    const { family, toolSet } = describeModel({ provider: "local", model: "qwen3:8b" }, facts);
    return [family, toolSet];
  };
  expect(describe({})).toEqual(["small", "small"]);
  expect(describe({ family: "open" })).toEqual(["open", "all"]);
  expect(describe({ family: "claude-sonnet-5" })).toEqual(["claude", "all"]);
  expect(describe({ tool_set: "all" })).toEqual(["small", "all"]);
  expect(describe({ family: "open", tool_set: "small" })).toEqual(["open", "small"]);
});
