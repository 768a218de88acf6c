import { describe, expect, test } from "vitest";
import { adviseServer } from "../../../../src/model/answer/written-calls/server-advice.ts";
import { formats } from "../../../../src/model/answer/written-calls/formats.ts";

/** Names of parsers as the servers register them, looked up on 2026-11-23. */
const registered = {
  // vllm/tool_parsers/__init__.py
  vllm: `cohere_command3 deepseek_v3 deepseek_v31 deepseek_v32 deepseek_v4 functiongemma gemma4 glm45 granite
    granite-20b-fc hermes jamba kimi_k2 kimi_k3 llama3_json llama4_json llama4_pythonic longcat minimax_m2 mistral
    olmo3 openai phi4_mini_json pythonic qwen3_coder xlam`.split(/\s+/),
  // python/sglang/srt/function_call/function_call_parser.py
  sglang:
    `cohere_command4 deepseekv3 deepseekv31 deepseekv32 deepseekv4 gemma4 glm gpt-oss kimi_k2 kimi_k3 llama3
    minimax-m2 mistral pythonic qwen qwen3_coder`.split(/\s+/),
};

test.each(formats.map(({ parsers, open }) => [open.source.slice(0, 60), parsers] as const))(
  "the parsers for %s are registered",
  (_, { vllm, sglang }) => {
    if (vllm !== undefined) expect(registered.vllm).toContain(vllm);
    if (sglang !== undefined) expect(registered.sglang).toContain(sglang);
  },
);

describe("the advice", () => {
  const parsers = { vllm: "glm45", sglang: "glm" };

  test.each([
    ["vllm", "Start vLLM with --enable-auto-tool-choice --tool-call-parser glm45."],
    ["llamacpp", /^Start llama\.cpp with --jinja .*--chat-template-file/],
    ["ollama", /^Choose a model whose template has tools .*num_ctx/],
    ["lmstudio", /^Choose a model that LM Studio marks for tool use/],
  ])("for %s names only its own setting", (provider, expected) => {
    expect(adviseServer(provider, parsers)).toMatch(expected);
  });

  test("for an unknown server names the settings of each server", () => {
    const text = adviseServer("work", parsers);
    expect(text).toMatch(/vLLM with --enable-auto-tool-choice --tool-call-parser glm45, SGLang with/);
    expect(text).toMatch(/--tool-call-parser glm, llama\.cpp with --jinja.*Ollama or LM Studio/);
  });

  test("without a parser names the option", () => {
    expect(adviseServer("vllm", {})).toBe(
      "Start vLLM with --enable-auto-tool-choice and the --tool-call-parser of the model.",
    );
  });
});
