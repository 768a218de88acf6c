/** Tool calls as text, in the shapes of public reports; the contents are our own. */

const text = { type: "string" };
const tools = [
  { name: "read", properties: { filePath: text, offset: { type: "integer" } }, required: ["filePath"] },
  { name: "bash", properties: { command: text }, required: ["command"] },
  { name: "edit", properties: { filePath: text, oldString: text, newString: text }, required: ["filePath"] },
  { name: "list", properties: { path: text }, required: [] },
  { name: "todoread", properties: {}, required: [] },
].map(({ name, properties, required }) => ({
  name,
  description: "",
  schema: { type: "object", properties, required },
}));

/** The tools that are offered in the cases. */
export const offeredTools = { tools, otherToolNames: new Map([["read_file", "read"]]) };

const github = "https://github.com/";
const path = '{"filePath": "src/a.ts"}';
const input = { filePath: "src/a.ts" };
const antml = ["antml", ""].join(":");

/** Tags of Claude's format. */
const invoke = (prefix = "", name = "read") =>
  `<${prefix}invoke name="${name}">\n<${prefix}parameter name="filePath">src/a.ts</${prefix}parameter>\n</${prefix}invoke>`;
const qwen = "<function=read>\n<parameter=filePath>\nsrc/a.ts\n</parameter>\n</function>";
/** Tags of DeepSeek's later formats, with the bars as the report has them. */
const dsml = (wrapper: string, bar = "\uFF5C") => {
  const tag = `${bar}DSML${bar}`;
  return `<${tag}${wrapper}>\n<${tag}invoke name="read">\n<${tag}parameter name="filePath" string="true">src/a.ts</${tag}parameter>\n<${tag}parameter name="offset" string="false">3</${tag}parameter>\n</${tag}invoke>\n</${tag}${wrapper}>`;
};

export interface WrittenCallCase {
  readonly format: string;
  /** A public report of the shape. */
  readonly source: string;
  readonly text: string;
  readonly calls: readonly { readonly tool: string; readonly input: unknown }[];
  /** Parsers of vLLM and SGLang. */
  readonly parsers: { readonly vllm?: string; readonly sglang?: string };
  /** Whether ordinary text may look the same. */
  readonly isLoose?: true;
}

type Row = readonly [source: string, text: string, used?: unknown];

function cases(
  format: string,
  parsers: WrittenCallCase["parsers"],
  rows: readonly Row[],
  isLoose?: true,
): WrittenCallCase[] {
  return rows.map(([source, text, used = input]) => ({
    format,
    source: source.startsWith("https:") ? source : github + source,
    text,
    calls: (Array.isArray(used) ? used : [used]).map((one: unknown) => ({ tool: "read", input: one })),
    parsers,
    ...(isLoose && { isLoose }),
  }));
}

const hermes = cases("Hermes", { vllm: "hermes", sglang: "qwen" }, [
  ["Gitlawb/openclaude/pull/1791", `<tool_call>\n{"name": "read", "arguments": ${path}}\n</tool_call>`],
  ["jundot/omlx/issues/3153", `<tool_call>\n{"name": "read", "arguments": ${path}}`],
  [
    "lmstudio-ai/lmstudio-bug-tracker/issues/827",
    `<tool_call>{"name": "read", "arguments": ${path}}</tool_call><|im_end|>`,
  ],
  [
    "jundot/omlx/issues/2565",
    `<tool_call>\n\`\`\`json\n{"name": "read", "arguments": ${path}}\n\`\`\`\n</tool_call>`,
  ],
  [
    "lmstudio-ai/lmstudio-bug-tracker/issues/821",
    `<tool_call>\n{"name": "read", "arguments": ${path}}\n</tool_call>\n<tool_call>\n{"name": "read", "arguments": {"filePath": "b.ts"}}\n</tool_call>`,
    [input, { filePath: "b.ts" }],
  ],
]);

const qwenCoder = cases("Qwen 3 Coder", { vllm: "qwen3_coder", sglang: "qwen3_coder" }, [
  ["QwenLM/qwen-code/issues/10692", `<tool_call>\n${qwen}\n</tool_call>`],
  ["RightNow-AI/openfang/issues/857", `<tool_call>\n${qwen}\n</tool_call><|im_end|>\n<|endoftext|>`],
  [
    "lablup/mlxcel/issues/204",
    "<tool_call><function=read><parameter=filePath>src/a.ts</parameter></function></tool_call>",
  ],
  [
    "theroyallab/tabbyAPI/pull/378",
    "<tool_call>\n<function=read>\n<parameter=filePath>\nsrc/a.ts\n</parameter>\n<parameter=offset>\n3\n</parameter>\n</function>\n</tool_call>",
    { ...input, offset: 3 },
  ],
]);

const qwenBare = cases("Qwen 3 Coder without the outer tag", { vllm: "qwen3_coder", sglang: "qwen3_coder" }, [
  ["ollama/ollama/pull/17742", `${qwen}\n</tool_call>`],
  ["AntSeed/antseed/issues/213", qwen],
  ["ollama/ollama/pull/17742", `${qwen}\n${qwen}`, [input, input]],
]);

const deepseek = [
  ...cases("DeepSeek V3", { vllm: "deepseek_v3", sglang: "deepseekv3" }, [
    [
      "vllm-project/vllm/issues/21727",
      `<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>read\n\`\`\`json\n${path}\n\`\`\`<｜tool▁call▁end｜><｜tool▁calls▁end｜><｜end▁of▁sentence｜>`,
    ],
    [
      "deepseek-ai/DeepSeek-V3/issues/944",
      `function<｜tool▁sep｜>read\n\`\`\`json\n${path}\n\`\`\`<｜tool▁call▁end｜>`,
    ],
  ]),
  ...cases("DeepSeek V3.1", { vllm: "deepseek_v31", sglang: "deepseekv31" }, [
    [
      "vllm-project/vllm/pull/23454",
      `<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>read<｜tool▁sep｜>${path}<｜tool▁call▁end｜><｜tool▁calls▁end｜>`,
    ],
    [
      "musistudio/claude-code-router/issues/709",
      `<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>read<｜tool▁sep｜>${path}<｜tool▁call▁end｜><｜tool▁call▁begin｜>read<｜tool▁sep｜>{"filePath": "b.ts"}<｜tool▁call▁end｜><｜tool▁calls▁end｜>`,
      [input, { filePath: "b.ts" }],
    ],
  ]),
  ...cases("DeepSeek V3.2", { vllm: "deepseek_v32", sglang: "deepseekv32" }, [
    ["ochafik/minja/pull/11", dsml("function_calls"), { ...input, offset: 3 }],
    [
      "sgl-project/sglang/issues/17593",
      `${dsml("function_calls")}<｜end▁of▁sentence｜>`,
      { ...input, offset: 3 },
    ],
  ]),
  ...cases("DeepSeek V4", { vllm: "deepseek_v4", sglang: "deepseekv4" }, [
    ["TokenRhythm/opensquilla/issues/985", dsml("tool_calls"), { ...input, offset: 3 }],
    ["lsdefine/GenericAgent/issues/804", dsml("tool_calls", "\uFF5C\uFF5C"), { ...input, offset: 3 }],
    ["lsdefine/GenericAgent/issues/804", dsml("tool_calls", "\u2016"), { ...input, offset: 3 }],
    ["AgentFlocks/flocks/pull/687", dsml("tool_calls", "||"), { ...input, offset: 3 }],
  ]),
];

const glm = cases("GLM", { vllm: "glm45", sglang: "glm" }, [
  [
    "izaart95-jpg/GLM-Free-API/issues/27",
    "<tool_call>read\n<arg_key>filePath</arg_key>\n<arg_value>src/a.ts</arg_value>\n</tool_call>",
  ],
  [
    "sgl-project/sglang/pull/19925",
    "<tool_call>read<arg_key>filePath</arg_key><arg_value>src/a.ts</arg_value></tool_call>",
  ],
  ["zai-org/GLM-5/issues/84", "read<arg_key>filePath</arg_key><arg_value>src/a.ts</arg_value>\n</tool_call>"],
  [
    "ROCm/ATOM/pull/1747",
    "<tool_call>read\n<arg_key>filePath</arg_key><arg_value>src/a.ts</arg_value>\n<arg_key>offset</arg_key><arg_value>3</arg_value>\n</tool_call>",
    { ...input, offset: 3 },
  ],
]);

const kimi = [
  ...cases("Kimi K2", { vllm: "kimi_k2", sglang: "kimi_k2" }, [
    [
      "NousResearch/hermes-agent/issues/24534",
      `<|tool_calls_section_begin|><|tool_call_begin|>functions.read:0<|tool_call_argument_begin|>${path}<|tool_call_end|><|tool_calls_section_end|>`,
    ],
    [
      "ggml-org/llama.cpp/pull/17376",
      `<|tool_call_section_begin|><|tool_call_begin|>functions.read:3<|tool_call_argument_begin|>${path}<|tool_call_end|><|tool_call_section_end|><|im_end|>`,
    ],
    [
      "vllm-project/vllm/pull/38579",
      `<|tool_calls_section_begin|>\n<|tool_call_begin|>functions.read:0 <|tool_call_argument_begin|> ${path} <|tool_call_end|>\n<|tool_call_begin|>functions.read:1 <|tool_call_argument_begin|> {"filePath": "b.ts"} <|tool_call_end|>\n<|tool_calls_section_end|>`,
      [input, { filePath: "b.ts" }],
    ],
  ]),
  ...cases("Kimi K3", { vllm: "kimi_k3", sglang: "kimi_k3" }, [
    [
      "can1357/oh-my-pi/issues/8495",
      '<|open|>toolscall tool="read" index="1"<|sep|><|open|>argument key="filePath" type="string"<|sep|>src/a.ts<|close|>argument<|sep|><|close|>call<|sep|><|close|>tools<|sep|>',
    ],
    [
      "can1357/oh-my-pi/issues/8495",
      '<|open|>tools<|sep|><|open|>call tool="read" index="0"<|sep|>\n<|open|>argument key="filePath" type="string"<|sep|>src/a.ts<|close|>argument<|sep|>\n<|close|>call<|sep|>\n<|close|>tools<|sep|>',
    ],
  ]),
];

const minimax = cases("MiniMax", { vllm: "minimax_m2", sglang: "minimax-m2" }, [
  ["NousResearch/hermes-agent/issues/27834", `<minimax:tool_call>\n${invoke()}\n</minimax:tool_call>`],
  [
    "MiniMax-AI/MiniMax-M2.5/issues/10",
    '<minimax:tool_call>\n  <invoke name="read">\n    <parameter name="filePath">src/a.ts</parameter>\n  </invoke>\n</minimax:tool_call>\n[e~[',
  ],
]);

const claude = cases("Claude", {}, [
  ["anthropics/claude-code/issues/69258", `<function_calls>\n${invoke()}\n</function_calls>`],
  ["anthropics/claude-code/issues/69258", `count\n${invoke()}`],
  ["anomalyco/opencode/pull/6883", '<invoke name="read">\n  <filePath>src/a.ts</filePath>\n</invoke>'],
  ["QwenLM/qwen-code/issues/10692", invoke(antml)],
]);

const llama = [
  ...cases("Llama 3 with its token", { vllm: "llama3_json", sglang: "llama3" }, [
    ["raullenchai/Rapid-MLX/pull/703", `<|python_tag|>{"name": "read", "parameters": ${path}}<|eom_id|>`],
    [
      "timtoole02/Camelid/pull/335",
      `<|python_tag|>{"type": "function", "name": "read", "parameters": ${path}}<|eot_id|>`,
    ],
  ]),
  ...cases(
    "Llama 3 JSON",
    { vllm: "llama3_json", sglang: "llama3" },
    [
      ["raullenchai/Rapid-MLX/issues/700", `{"name": "read", "parameters": ${path}}`],
      ["ollama/ollama/issues/12174", `{"name": "read", "arguments": ${path}}`],
      ["selfagency/opilot/issues/149", `{\n"name": "read",\n"arguments": {\n"filePath": "src/a.ts"\n}\n}`],
      [
        "vllm-project/vllm/issues/11786",
        `{"type": "function", "function": {"name": "read", "parameters": ${path}}}`,
      ],
    ],
    true,
  ),
  ...cases(
    "Llama 4",
    { vllm: "llama4_pythonic", sglang: "pythonic" },
    [
      ["vllm-project/vllm/issues/22917", '[read(filePath="src/a.ts")]'],
      [
        "vllm-project/vllm/issues/22917",
        '[read(filePath="src/a.ts", offset=3), read(filePath="b.ts")]',
        [{ ...input, offset: 3 }, { filePath: "b.ts" }],
      ],
    ],
    true,
  ),
  ...cases("Llama 4 with its tokens", { vllm: "llama4_pythonic", sglang: "pythonic" }, [
    ["google/adk-python/issues/493", "<|python_start|>[read(filePath='src/a.ts')]<|python_end|><|eot|>"],
  ]),
  ...cases("Llama 4 JSON", { vllm: "llama4_json" }, [
    [
      "vllm-project/vllm/issues/16214",
      `<|python_start|>{"name": "read", "parameters": ${path}}<|python_end|>`,
    ],
  ]),
  ...cases("Llama 3.1, custom tools", {}, [
    ["raullenchai/Rapid-MLX/pull/703", `<function=read>${path}</function>`],
    ["lablup/mlxcel/issues/204", `<function=read>\n${path}\n</function><|eom_id|>`],
  ]),
];

const mistral = [
  ...cases("Mistral's list", { vllm: "mistral", sglang: "mistral" }, [
    ["EricLBuehler/mistral.rs/issues/1576", `[TOOL_CALLS][{"name": "read", "arguments": ${path}}]`],
    [
      "nomic-ai/gpt4all/issues/3255",
      `[TOOL_CALLS] [{"name": "read", "arguments": ${path}, "id": "abcdefghi"}]</s>`,
    ],
  ]),
  ...cases("Mistral's arguments", { vllm: "mistral", sglang: "mistral" }, [
    ["mistralai/mistral-vibe/issues/594", `[TOOL_CALLS]read[ARGS]${path}`],
    ["mistralai/mistral-vibe/issues/594", `[TOOL_CALLS]read[CALL_ID]abc123def[ARGS]${path}</s>`],
  ]),
];

const harmony = cases("Harmony", { vllm: "openai", sglang: "gpt-oss" }, [
  [
    "lablup/mlxcel/issues/654",
    `<|start|>assistant<|channel|>commentary to=functions.read <|constrain|>json<|message|>${path}<|call|>`,
  ],
  [
    "waybarrios/vllm-mlx/pull/50",
    `<|channel|>commentary to=functions.read\n<|constrain|>json\n<|message|>${path}\n<|call|>`,
  ],
  [
    "waybarrios/vllm-mlx/pull/562",
    `<|start|>assistant<|channel|>analysis to=functions.read code<|message|>\n${path}<|call|>`,
  ],
  [
    "lmstudio-ai/lmstudio-js/issues/493",
    `<|start|>assistant to=functions.read<|channel|>commentary json<|message|>${path}<|call|>`,
  ],
  ["raullenchai/Rapid-MLX/issues/480", `commentary to=functions.read json${path}`],
]);

const fenced = cases(
  "JSON in a code block",
  { vllm: "llama3_json", sglang: "llama3" },
  [
    ["ollama/ollama/issues/13519", `\`\`\`json\n{"name": "read", "parameters": ${path}}\n\`\`\``],
    ["Gitlawb/openclaude/issues/433", `\`\`\`\n{\n  "name": "read",\n  "arguments": ${path}\n}\n\`\`\``],
  ],
  true,
);

const toolCode = [
  ...cases("tool_code", { vllm: "pythonic", sglang: "pythonic" }, [
    [
      "microsoft/vscode-copilot-release/issues/9092",
      '```tool_code\nprint(default_api.read(filePath="src/a.ts", offset=3))\n```',
      { ...input, offset: 3 },
    ],
    ["microsoft/vscode-copilot-release/issues/9092", "```tool_code\nread(filePath='src/a.ts')\n```"],
    [
      "NousResearch/hermes-agent/issues/74771",
      '<tool_code>\nprint(default_api.read(filePath="src/a.ts"))\n</tool_code>',
    ],
  ]),
  ...cases("Gemini", {}, [
    ["NousResearch/hermes-agent/issues/74771", "declaration:default_api:read{filePath:src/a.ts}"],
    ["heypinchy/pinchy/pull/492", 'default_api:read{filePath:<|"|>src/a.ts<|"|>}'],
  ]),
  ...cases("Gemma 4", { vllm: "gemma4", sglang: "gemma4" }, [
    [
      "abetlen/llama-cpp-python/issues/2227",
      '<|tool_call>call:read{filePath:<|"|>src/a.ts<|"|>}<tool_call|>',
    ],
    [
      "NousResearch/hermes-agent/pull/7449",
      '<|tool_call>call:read(filePath: "src/a.ts", offset: 3)<tool_call|>',
      { ...input, offset: 3 },
    ],
    ["Gitlawb/openclaude/pull/380", "call:read{filePath:src/a.ts}"],
    ["unslothai/unsloth/issues/4999", '<|tool_call>call:read { "filePath": "src/a.ts" }<tool_call|>'],
  ]),
];

const cline = cases(
  "Cline",
  {},
  [
    ["Kilo-Org/kilocode/issues/4384", "<read>\n<filePath>src/a.ts</filePath>\n</read>"],
    ["NousResearch/hermes-agent/pull/81237", "<read><filePath>src/a.ts</filePath></read>"],
  ],
  true,
);

const others = [
  ...cases("Cohere", { vllm: "cohere_command3", sglang: "cohere_command4" }, [
    [
      "smg-project/smg/issues/305",
      `<|START_ACTION|>\n{"tool_name": "read", "parameters": ${path}}\n<|END_ACTION|>`,
    ],
    [
      "Blaizzy/mlx-vlm/pull/1298",
      `<|START_ACTION|>[\n    {"tool_call_id": "0", "tool_name": "read", "parameters": ${path}}\n]<|END_ACTION|><|END_OF_TURN_TOKEN|>`,
    ],
  ]),
  ...cases("Command R", {}, [
    [
      "ollama/ollama/pull/14970",
      `Action: \`\`\`json\n[{"tool_name": "read", "parameters": ${path}}]\n\`\`\``,
    ],
  ]),
  ...cases("Phi 4", { vllm: "phi4_mini_json" }, [
    ["sgl-project/sglang/pull/17132", `functools[{"name": "read", "arguments": ${path}}]`],
    [
      "vllm-project/vllm/pull/14880",
      `<|tool_call|>functools[{"name": "read", "arguments": ${path}}]<|/tool_call|><|end|>`,
    ],
  ]),
  ...cases("Granite 3", { vllm: "granite" }, [
    [
      "https://docs.vllm.ai/en/stable/features/tool_calling.html",
      `<|tool_call|>[{"name": "read", "arguments": ${path}}]`,
    ],
  ]),
  ...cases(
    "xLAM",
    { vllm: "xlam" },
    [
      [
        "https://docs.vllm.ai/en/stable/features/tool_calling.html",
        `[{"name": "read", "arguments": ${path}}]`,
      ],
    ],
    true,
  ),
  ...cases("a call announced in brackets", {}, [
    ["NousResearch/hermes-agent/issues/27834", `[Calling tool: read with arguments: ${path}]`],
  ]),
  ...cases("a function in a tag", {}, [
    [
      "adolfousier/opencrabs/issues/398",
      "<function>\n<name>read</name>\n<filePath>src/a.ts</filePath>\n</function>",
    ],
    ["Ultimate-Multisite/superdav-ai-agent/pull/2612", `<tool_call>read(${path})</tool_call>`],
  ]),
];

const vllmDocs = "https://docs.vllm.ai/en/stable/features/tool_calling.html";
const documented = [
  ...cases("LongCat", { vllm: "longcat" }, [
    [
      "lablup/mlxcel/issues/765",
      "<longcat_tool_call>read\n<longcat_arg_key>filePath</longcat_arg_key>\n<longcat_arg_value>src/a.ts</longcat_arg_value>\n</longcat_tool_call>",
    ],
  ]),
  ...cases("Olmo 3", { vllm: "olmo3" }, [
    [
      vllmDocs,
      '<function_calls>\nread(filePath="src/a.ts")\nread(filePath="b.ts")\n</function_calls>',
      [input, { filePath: "b.ts" }],
    ],
  ]),
  ...cases("FunctionGemma", { vllm: "functiongemma" }, [
    [vllmDocs, "<start_function_call>call:read{filePath:<escape>src/a.ts<escape>}<end_function_call>"],
  ]),
  ...cases("Granite 20B", { vllm: "granite-20b-fc" }, [
    [vllmDocs, `<function_call> {"name": "read", "arguments": ${path}}`],
  ]),
  ...cases("Jamba", { vllm: "jamba" }, [
    [vllmDocs, `<tool_calls>[\n  {"name": "read", "arguments": ${path}}\n]</tool_calls>`],
  ]),
  ...cases("LM Studio", {}, [
    [
      "https://lmstudio.ai/docs/developer/openai-compat/tools",
      `[TOOL_REQUEST]{"name": "read", "arguments": ${path}}[END_TOOL_REQUEST]`,
    ],
  ]),
  ...cases("a name in brackets", {}, [
    ["https://github.com/openclaw/openclaw", `[read]\n${path}\n[END_TOOL_REQUEST]`],
  ]),
];

export const writtenCallCases: readonly WrittenCallCase[] = [
  ...hermes,
  ...qwenCoder,
  ...qwenBare,
  ...deepseek,
  ...glm,
  ...kimi,
  ...minimax,
  ...claude,
  ...llama,
  ...mistral,
  ...harmony,
  ...fenced,
  ...toolCode,
  ...cline,
  ...others,
  ...documented,
];

const call = `<tool_call>\n{"name": "read", "arguments": ${path}}\n</tool_call>`;
const json = `{"name": "read", "arguments": ${path}}`;
const glmCall = "<tool_call>read\n<arg_key>filePath</arg_key>\n<arg_value>src/a.ts</arg_value>\n</tool_call>";

/** Texts that look like calls but are not. */
export const lookAlikes: readonly string[] = [
  // Documentation about tool calls.
  `Hermes models write calls in this format:\n\n${call}`,
  `The syntax of GLM:\n\n\`\`\`\n${glmCall}\n\`\`\``,
  `Each tool call is written as JSON between tags:\n${call}`,
  `The prompt template renders calls, e.g.\n${glmCall}`,
  `Calls are wrapped in tags:\n\n\`\`\`\n${call}\n\`\`\``,
  `## Format\n\nQwen 3 Coder uses XML:\n\n\`\`\`xml\n<tool_call>\n${qwen}\n</tool_call>\n\`\`\``,
  `The grammar is\n\n\`\`\`\nroot ::= "<tool_call>" object "</tool_call>"\n\`\`\``,
  "A Kimi call consists of `<|tool_call_begin|>`, the name, `<|tool_call_argument_begin|>` and JSON.",
  "The tags `<tool_call>` and `</tool_call>` are missing in the template.",
  `vLLM's parser expects this notation:\n${qwen}`,
  // The answer to "show me how a tool call looks".
  `For example:\n${call}`,
  `A call looks like this:\n\`\`\`xml\n${call}\n\`\`\``,
  `Here is an example of a request:\n\n\`\`\`json\n${json}\n\`\`\``,
  `Let me show you the format:\n${call}`,
  `I'll explain with an example:\n\n${call}`,
  `Sure! This reads a file:\n\n\`\`\`json\n${json}\n\`\`\``,
  // Code blocks, and calls followed by text.
  `${call}\nis what the model sent.`,
  `A call of Qwen:\n\`\`\`xml\n${call}\n\`\`\`\nThe server must parse it.`,
  `\`\`\`json\n${json}\n\`\`\`\nThat is the payload.`,
  `${json}\n\nThis object is the request.`,
  "```tool_code\nprint(default_api.read(filePath='a'))\n```\nruns the tool.",
  `<function_calls>\n${invoke()}\n</function_calls>\n\nThat was it.`,
  `[TOOL_CALLS][${json}] has to be parsed by the server.`,
  `First attempt:\n${call}\n\nSecond attempt failed, so I stop here.`,
  // Placeholders.
  '<tool_call>\n{"name": "read", "arguments": {"filePath": "..."}}\n</tool_call>',
  '<tool_call>\n{"name": "read", "arguments": {"filePath": "<path>"}}\n</tool_call>',
  '{"name": "read", "arguments": {"filePath": "path/to/file"}}',
  "<read>\n<filePath>path/to/file.ts</filePath>\n</read>",
  '<tool_call>{"name": "bash", "arguments": {"command": "your_command"}}</tool_call>',
  // Quoted logs, transcripts, files and comments.
  `2026-01-02 10:11:12 INFO assistant: ${json}`,
  `The server printed:\n${call}`,
  `In the log the model wrote:\n\n${call}`,
  `The user pasted this:\n\`\`\`\n${call}\n\`\`\``,
  `The output of the command was:\n\`\`\`\n$ cat log.txt\n${call}\n\`\`\``,
  `The file prompts/hermes.md contains:\n\n${call}`,
  `docs/tools.md says:\n\n\`\`\`\n# Tools\n${call}\n\`\`\``,
  `The test's fixture is:\n\`\`\`\n${call}\n\`\`\``,
  `> ${call.replaceAll("\n", "\n> ")}`,
  `> <tool_call>${json}</tool_call>`,
  `- <tool_call>${json}</tool_call>`,
  `// <tool_call>${json}</tool_call>`,
  `assistant: <tool_call>${json}</tool_call>`,
  `const answer = '<tool_call>${json}</tool_call>`,
  `It ends with "<tool_call>${json}</tool_call>"`,
  `The answer is \`<tool_call>${json}</tool_call>\``,
  `The model replied with \`${json}\`.`,
  // Other tools, other JSON, other tags.
  '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Rome"}}\n</tool_call>',
  '{"name": "read-package", "version": "1.0.0", "dependencies": {}}',
  '```json\n{"name": "read", "version": "1.0.0"}\n```',
  '{"name": "read", "arguments": {"unknown": 1}}',
  '{"name": "read", "arguments": {"filePath": "a"}, "result": "b"}',
  '{"name": "read", "arguments": {}}',
  '[{"name": "read", "description": "Reads a file"}]',
  "<list><item>one</item><item>two</item></list>",
  "```xml\n<edit>\n<author>me</author>\n</edit>\n```",
  "The steps are [read(later)]",
  "See [read](https://example.com)",
  "I changed `read(filePath)` in [a.ts](a.ts)",
  // Truncated calls.
  '<tool_call>\n{"name": "read", "arguments": {"filePath": "src/a.ts"\n</tool_call>',
  '<tool_call>\n{"name": "bash", "arguments": {"command": "rm -rf bui',
  "<tool_call>\n<function=bash>\n<parameter=command>\nrm -rf bui",
  "<tool_call>",
  "Done. All tests pass.",
  "",
];
