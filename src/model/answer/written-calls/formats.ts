import { argumentsBody, functionsBody, jsonBody, matchAt, type ParseBody, tagsBody } from "./bodies.ts";

/** The names of a format's tool-call parser. Undefined if the server has none for it. */
export interface ToolCallParsers {
  /** https://docs.vllm.ai/en/stable/features/tool_calling.html */
  readonly vllm?: string;
  /** https://docs.sglang.io/advanced_features/tool_parser.html */
  readonly sglang?: string;
}

/** The call syntax of a model family. */
export interface CallFormat {
  /** Where the format is described. */
  readonly source: string;
  readonly parsers: ToolCallParsers;
  /** Matches what precedes the arguments. The group `tool` is the name, unless the body has it. */
  readonly open: RegExp;
  readonly body: ParseBody;
  /** Matches what must follow the arguments. */
  readonly close?: RegExp;
  /** Set if ordinary text may look the same. The arguments must then fit the tool's schema. */
  readonly isLoose?: true;
}

const name = String.raw`["']?(?<tool>[\w.:-]+)["']?`;
/** An opening code fence. */
const fence = String.raw`(?:\x60{3}\w*\s{0,9})?`;
const lineStart = String.raw`(?<=^|\n)[ \t]{0,20}`;
const bar = String.raw`[|\uFF5C]`;
const dsml = String.raw`[|\uFF5C\u2016 ]{1,4}DSML[|\uFF5C\u2016 ]{1,4}`;
const json = String.raw`(?=[{[])`;

const pattern = (text: string, flags = ""): RegExp => new RegExp(text, `y${flags}`);

/** A tag named like a tool, with one nested tag per parameter. */
const namedTagBody: ParseBody = (text, at, tool) => {
  const close = new RegExp(`\\s*</${tool?.replaceAll(/[.]/g, "\\.") ?? ""}>`, "y");
  const found = tagsBody(text, at, tool, close);
  const end = found && matchAt(close, text, found.end);
  return found && end && { calls: found.calls, end: found.end + end[0].length };
};

const vllmParsers = "https://docs.vllm.ai/en/stable/features/tool_calling.html";

/** The first format that matches decides. */
export const formats: readonly CallFormat[] = [
  {
    // Hermes, Qwen 2.5 and 3, Granite 4.
    source: vllmParsers,
    parsers: { vllm: "hermes", sglang: "qwen" },
    open: pattern(String.raw`<tool_call>\s{0,9}${fence}${json}`),
    body: jsonBody,
  },
  {
    // GLM 4.5 and later; the first tag may be missing.
    source: "https://huggingface.co/zai-org/GLM-4.5/blob/main/chat_template.jinja",
    parsers: { vllm: "glm45", sglang: "glm" },
    open: pattern(
      String.raw`(?:<tool_call>\s{0,9}|${lineStart})${name}\s{0,9}(?=<arg_key>|(?<=<tool_call>\s{0,9}[\w.:-]{1,100}\s{0,9})</tool_call>)`,
    ),
    body: tagsBody,
    close: pattern(String.raw`\s*</tool_call>`),
  },
  {
    source: vllmParsers,
    parsers: { vllm: "longcat" },
    open: pattern(String.raw`<longcat_tool_call>\s{0,9}${name}\s{0,9}`),
    body: tagsBody,
    close: pattern(String.raw`\s*</longcat_tool_call>`),
  },
  {
    // A function's name and its arguments in JSON.
    source: "https://github.com/Ultimate-Multisite/superdav-ai-agent/pull/2612",
    parsers: {},
    open: pattern(String.raw`<tool_call>\s{0,9}${name}\((?=\{)`),
    body: jsonBody,
    close: pattern(String.raw`\)`),
  },
  {
    // Llama 3.1, custom tools.
    source: "https://www.llama.com/docs/model-cards-and-prompt-formats/llama3_1/",
    parsers: {},
    open: pattern(String.raw`<function=${name}>\s{0,9}(?=\{)`),
    body: jsonBody,
  },
  {
    // Qwen 3 Coder, with or without <tool_call> around it; Seed OSS.
    source: "https://huggingface.co/Qwen/Qwen3-Coder-480B-A35B-Instruct/blob/main/chat_template.jinja",
    parsers: { vllm: "qwen3_coder", sglang: "qwen3_coder" },
    open: pattern(String.raw`<function(?:=|\s+name=)${name}>`),
    body: tagsBody,
    close: pattern(String.raw`\s*</function>`),
  },
  {
    // A mix of both, seen with DeepSeek V4.
    source: "https://github.com/adolfousier/opencrabs/issues/398",
    parsers: {},
    open: pattern(String.raw`<function>\s{0,9}<name>\s{0,9}${name}\s{0,9}</name>`),
    body: tagsBody,
    close: pattern(String.raw`\s*</function>`),
  },
  {
    // DeepSeek V3 and R1; servers that drop special tokens leave the second part.
    source: "https://huggingface.co/deepseek-ai/DeepSeek-V3/blob/main/tokenizer_config.json",
    parsers: { vllm: "deepseek_v3", sglang: "deepseekv3" },
    open: pattern(
      String.raw`(?:<${bar}tool.call.begin${bar}>\s{0,9})?function\s{0,9}<${bar}tool.sep${bar}>\s{0,9}${name}\s{0,9}\x60{3}json\s{0,9}(?=\{)`,
    ),
    body: jsonBody,
  },
  {
    source: "https://huggingface.co/deepseek-ai/DeepSeek-V3.1/blob/main/README.md",
    parsers: { vllm: "deepseek_v31", sglang: "deepseekv31" },
    open: pattern(
      String.raw`<${bar}tool.call.begin${bar}>\s{0,9}${name}\s{0,9}<${bar}tool.sep${bar}>\s{0,9}(?=\{)`,
    ),
    body: jsonBody,
  },
  {
    // DeepSeek V4: another tag around the calls.
    source: "https://docs.vllm.ai/en/stable/api/vllm/parser/deepseek_v4/",
    parsers: { vllm: "deepseek_v4", sglang: "deepseekv4" },
    open: pattern(String.raw`<${dsml}tool_(?:calls|use)>\s{0,9}<${dsml}invoke\s+name=${name}\s{0,9}>`),
    body: tagsBody,
    close: pattern(String.raw`\s*</${dsml}invoke>`),
  },
  {
    source: "https://huggingface.co/deepseek-ai/DeepSeek-V3.2/blob/main/encoding/README.md",
    parsers: { vllm: "deepseek_v32", sglang: "deepseekv32" },
    open: pattern(String.raw`<${dsml}invoke\s+name=${name}\s{0,9}>`),
    body: tagsBody,
    close: pattern(String.raw`\s*</${dsml}invoke>`),
  },
  {
    source: "https://github.com/MoonshotAI/Kimi-K2/blob/main/docs/tool_call_guidance.md",
    parsers: { vllm: "kimi_k2", sglang: "kimi_k2" },
    open: pattern(
      String.raw`<\|tool_call_begin\|>\s{0,9}${name}\s{0,9}<\|tool_call_argument_begin\|>\s{0,9}(?=\{)`,
    ),
    body: jsonBody,
  },
  {
    source: "https://github.com/can1357/oh-my-pi/issues/8495",
    parsers: { vllm: "kimi_k3", sglang: "kimi_k3" },
    open: pattern(
      String.raw`(?:<\|open\|>tools<\|sep\|>\s{0,9})?<\|open\|>(?:tools)?call tool="(?<tool>[\w.:-]+)"[^<>]{0,100}<\|sep\|>`,
    ),
    body: tagsBody,
    close: pattern(String.raw`\s*<\|close\|>call<\|sep\|>`),
  },
  {
    source: "https://huggingface.co/MiniMaxAI/MiniMax-M2/blob/main/docs/tool_calling_guide.md",
    parsers: { vllm: "minimax_m2", sglang: "minimax-m2" },
    open: pattern(String.raw`<minimax:tool_call>\s{0,9}<invoke\s+name=${name}\s{0,9}>`),
    body: tagsBody,
    close: pattern(String.raw`\s*</invoke>`),
  },
  {
    // Claude, and models that were trained on its answers.
    source: "https://www.anthropic.com/engineering/writing-tools-for-agents",
    parsers: {},
    open: pattern(String.raw`<(?:antml:)?invoke\s+name=${name}\s{0,9}>`),
    body: tagsBody,
    close: pattern(String.raw`\s*</(?:antml:)?invoke>`),
  },
  {
    source: "https://www.llama.com/docs/model-cards-and-prompt-formats/llama3_1/",
    parsers: { vllm: "llama3_json", sglang: "llama3" },
    open: pattern(String.raw`<\|python_tag\|>\s{0,9}${json}`),
    body: jsonBody,
  },
  {
    // Calls of Llama's built-in tools.
    source: "https://www.llama.com/docs/model-cards-and-prompt-formats/llama3_1/",
    parsers: {},
    open: pattern(String.raw`<\|python_tag\|>\s{0,9}(?<tool>\w+?)(?:\.call)?(?=\()`),
    body: argumentsBody,
  },
  {
    source: "https://github.com/vllm-project/vllm/issues/16214",
    parsers: { vllm: "llama4_json" },
    open: pattern(String.raw`<\|python_start\|>\s{0,9}(?=\{)`),
    body: jsonBody,
  },
  {
    // Llama 4 with its tokens; LFM 2.
    source: "https://www.llama.com/docs/model-cards-and-prompt-formats/llama4/",
    parsers: { vllm: "llama4_pythonic", sglang: "pythonic" },
    open: pattern(String.raw`(?:<\|python_start\|>|<\|tool_call_start\|>)\s{0,9}\[(?=\s{0,9}\w)`),
    body: functionsBody,
    close: pattern(String.raw`\s*\]`),
  },
  {
    source: vllmParsers,
    parsers: { vllm: "olmo3" },
    open: pattern(String.raw`<function_calls>\s{0,9}(?=\w)`),
    body: functionsBody,
  },
  {
    // A list of calls.
    source: "https://docs.vllm.ai/en/stable/api/vllm/tool_parsers/mistral_tool_parser/",
    parsers: { vllm: "mistral", sglang: "mistral" },
    open: pattern(String.raw`\[TOOL_CALLS\]\s{0,9}${json}`),
    body: jsonBody,
  },
  {
    // A name and [ARGS].
    source: "https://docs.vllm.ai/en/stable/api/vllm/tool_parsers/mistral_tool_parser/",
    parsers: { vllm: "mistral", sglang: "mistral" },
    open: pattern(
      String.raw`\[TOOL_CALLS\]\s{0,9}(?<tool>[\w.-]+)\s{0,9}(?:\[CALL_ID\]\w*)?\s{0,9}(?:\[ARGS\])?\s{0,9}(?=\{)`,
    ),
    body: jsonBody,
  },
  {
    // Harmony, also if a server drops its special tokens.
    source: "https://developers.openai.com/cookbook/articles/openai-harmony",
    parsers: { vllm: "openai", sglang: "gpt-oss" },
    open: pattern(
      String.raw`(?:<\|start\|>(?:assistant)?)?(?:<\|channel\|>)?(?:assistant)?(?:commentary|analysis)?\s{0,3}to=functions\.(?<tool>[\w.-]+)\s{0,9}(?:<\|channel\|>(?:commentary|analysis)\s{0,9})?(?:<\|constrain\|>)?\s{0,9}(?:json|code)?\s{0,9}(?:<\|message\|>)?\s{0,9}(?=\{)`,
    ),
    body: jsonBody,
  },
  {
    // Granite 3.
    source: "https://huggingface.co/ibm-granite/granite-3.3-8b-instruct/blob/main/tokenizer_config.json",
    parsers: { vllm: "granite" },
    open: pattern(String.raw`<\|tool_call\|>\s{0,9}${json}`),
    body: jsonBody,
  },
  {
    source: vllmParsers,
    parsers: { vllm: "granite-20b-fc" },
    open: pattern(String.raw`<function_call>\s{0,9}(?=\{)`),
    body: jsonBody,
  },
  {
    source: vllmParsers,
    parsers: { vllm: "jamba" },
    open: pattern(String.raw`<tool_calls>\s{0,9}(?=\[)`),
    body: jsonBody,
  },
  {
    source: "https://github.com/smg-project/smg/issues/305",
    parsers: { vllm: "cohere_command3", sglang: "cohere_command4" },
    open: pattern(String.raw`<\|START_ACTION\|>\s{0,9}${json}`),
    body: jsonBody,
  },
  {
    // Command R.
    source: "https://github.com/ollama/ollama/pull/14970",
    parsers: {},
    open: pattern(String.raw`${lineStart}Action:\s{0,9}${fence}(?=\[)`),
    body: jsonBody,
  },
  {
    source: "https://github.com/sgl-project/sglang/pull/17132",
    parsers: { vllm: "phi4_mini_json" },
    open: pattern(String.raw`(?:<\|tool_call\|>)?functools\s{0,3}(?=\[)`),
    body: jsonBody,
  },
  {
    // LM Studio's own format, for models without one.
    source: "https://lmstudio.ai/docs/developer/openai-compat/tools",
    parsers: {},
    open: pattern(String.raw`\[TOOL_REQUEST\]\s{0,9}(?=\{)`),
    body: jsonBody,
    close: pattern(String.raw`\s*\[END_TOOL_REQUEST\]`),
  },
  {
    source: "https://github.com/openclaw/openclaw",
    parsers: {},
    open: pattern(String.raw`${lineStart}\[(?<tool>[\w.-]+)\]\s{0,9}(?=\{)`),
    body: jsonBody,
    close: pattern(String.raw`\s*\[END_TOOL_REQUEST\]`),
  },
  {
    source: "https://github.com/NousResearch/hermes-agent/issues/27834",
    parsers: {},
    open: pattern(String.raw`\[Calling tool:\s{0,3}${name}\s{1,3}with arguments:\s{0,3}(?=\{)`),
    body: jsonBody,
    close: pattern(String.raw`\s*\]`),
  },
  {
    // Gemma 4; servers that drop special tokens leave the part after the first one.
    source: "https://docs.vllm.ai/en/stable/api/vllm/parser/gemma4/",
    parsers: { vllm: "gemma4", sglang: "gemma4" },
    open: pattern(
      String.raw`(?:<\|tool_call>|${lineStart})call:\s{0,3}(?:default_api[.:])?(?<tool>[\w.-]+)\s{0,3}(?=[{(])`,
    ),
    body: argumentsBody,
  },
  {
    source: vllmParsers,
    parsers: { vllm: "functiongemma" },
    open: pattern(String.raw`<start_function_call>call:(?<tool>[\w.-]+)(?=\{)`),
    body: argumentsBody,
    close: pattern(String.raw`<end_function_call>`),
  },
  {
    // Gemini.
    source: "https://github.com/NousResearch/hermes-agent/issues/74771",
    parsers: {},
    open: pattern(String.raw`${lineStart}(?:declaration:)?default_api:(?<tool>[\w-]+)\s{0,3}(?=\{)`),
    body: argumentsBody,
  },
  {
    // Gemma 3. vLLM's parser needs a special template for it.
    source: "https://ai.google.dev/gemma/docs/capabilities/text/function-calling-gemma3",
    parsers: { vllm: "pythonic", sglang: "pythonic" },
    open: pattern(
      String.raw`(?:\x60{3}tool_code|<tool_code>)\s{1,9}(?:print\()?(?:default_api\.)?(?<tool>\w+)(?=\()`,
    ),
    body: argumentsBody,
    close: pattern(String.raw`\)?`),
  },
  {
    // Llama 3.2 and 4 without tokens.
    source: "https://www.llama.com/docs/model-cards-and-prompt-formats/llama4/",
    parsers: { vllm: "llama4_pythonic", sglang: "pythonic" },
    open: pattern(String.raw`${lineStart}\[(?=\s{0,9}\w+(?:\.\w+)?\()`),
    body: functionsBody,
    close: pattern(String.raw`\s*\]`),
    isLoose: true,
  },
  {
    // Lists of calls, as xLAM writes them.
    source: vllmParsers,
    parsers: { vllm: "xlam" },
    open: pattern(String.raw`${lineStart}(?=\[)`),
    body: jsonBody,
    isLoose: true,
  },
  {
    // Llama 3 without its token, and what many models write in a fence.
    source: "https://www.llama.com/docs/model-cards-and-prompt-formats/llama3_1/",
    parsers: { vllm: "llama3_json", sglang: "llama3" },
    open: pattern(String.raw`${lineStart}(?=\{)`),
    body: jsonBody,
    isLoose: true,
  },
  {
    // Cline, and models that were trained on its prompt.
    source: "https://docs.cline.bot/exploring-clines-tools/cline-tools-guide",
    parsers: {},
    open: pattern(String.raw`${lineStart}<(?<tool>[A-Za-z][\w-]*)>(?=\s{0,9}<)`),
    body: namedTagBody,
    isLoose: true,
  },
];

/** Tags and tokens around calls, between them and at the end of an answer. */
const surroundings = [
  String.raw`\s`,
  String.raw`<\|close\|>\w+<\|sep\|>`,
  String.raw`</?[\w:\uFF5C|\u2581]*(?:tool_call|tool_calls|function_calls|function_call|toolcall|tools|function|invoke|parameter|arg_value|think|tool_code)>`,
  String.raw`</?${dsml}\w+>`,
  String.raw`<[|\uFF5C][\w\u2581/]+[|\uFF5C]>`,
  String.raw`<(?:tool_call|turn|channel)\|>`,
  String.raw`</?s>`,
  String.raw`<(?:eos|end_of_turn|end_function_call)>`,
  String.raw`\[(?:/TOOL_CALLS|/?INST|END_TOOL_REQUEST|e~\[)\]?`,
  String.raw`\x60{3,}`,
  String.raw`~{3,}`,
].join("|");

/** Matches text that may separate two calls or follow the last one. */
export const betweenCalls = new RegExp(`(?:${surroundings})*`, "y");
/** Matches what may precede the first call. */
export const beforeCalls = new RegExp(
  `(?:(?!\\x60|~)(?:${surroundings})|(?<=>)(?:assistant|commentary|analysis))*$`,
);
