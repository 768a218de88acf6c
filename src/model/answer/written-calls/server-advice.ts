import type { ToolCallParsers } from "./formats.ts";

/** Says which setting of the server makes it recognize tool calls. `provider` is the id of a preset, or any other. */
export function adviseServer(provider: string, parsers: ToolCallParsers): string {
  const own = advice.get(provider);
  return own === undefined ? adviseAny(parsers) : own(parsers);
}

/** vLLM refuses tools without both options: https://docs.vllm.ai/en/stable/features/tool_calling.html */
const vllm = ({ vllm: parser }: ToolCallParsers): string =>
  parser === undefined
    ? "vLLM with --enable-auto-tool-choice and the --tool-call-parser of the model"
    : `vLLM with --enable-auto-tool-choice --tool-call-parser ${parser}`;

/** https://docs.sglang.io/advanced_features/tool_parser.html */
const sglang = ({ sglang: parser }: ToolCallParsers): string =>
  `SGLang with ${parser === undefined ? "the --tool-call-parser of the model" : `--tool-call-parser ${parser}`}`;

/** `--jinja` is the default of newer versions: https://github.com/ggml-org/llama.cpp/blob/master/tools/server/README.md */
const llamaCpp =
  "llama.cpp with --jinja and, if the model's own template has no tools, a --chat-template-file";

const advice = new Map<string, (parsers: ToolCallParsers) => string>([
  ["vllm", (parsers) => `Start ${vllm(parsers)}.`],
  ["llamacpp", () => `Start ${llamaCpp}; update llama.cpp if its parser for the model is newer.`],
  [
    "ollama",
    () =>
      'Choose a model whose template has tools ("ollama show" lists the capability), update Ollama, and give it a larger context (OLLAMA_CONTEXT_LENGTH or num_ctx): a truncated prompt loses the tools.',
  ],
  [
    "lmstudio",
    () =>
      "Choose a model that LM Studio marks for tool use, update LM Studio and its runtime, and load the model with a larger context: a truncated prompt loses the tools.",
  ],
]);

const adviseAny = (parsers: ToolCallParsers): string =>
  `Start ${vllm(parsers)}, ${sglang(parsers)}, ${llamaCpp}; in Ollama or LM Studio choose a model whose template has tools, with a larger context; with a hosted provider, choose another one.`;
