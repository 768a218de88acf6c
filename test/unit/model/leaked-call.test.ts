import { describe, expect, test } from "vitest";
import { findLeakedCall } from "../../../src/model/answer/leaked-call.ts";

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

const find = (answer: string) => findLeakedCall(answer, tools);

const invoke = (prefix: string) =>
  `<${prefix}invoke name="read">\n<${prefix}parameter name="filePath">src/a.ts</${prefix}parameter>\n</${prefix}invoke>`;

const calls: [string, string, string | undefined][] = [
  ["Hermes", '<tool_call>\n{"name": "read", "arguments": {"filePath": "src/a.ts"}}\n</tool_call>', "hermes"],
  ["Hermes, not closed", '<tool_call>\n{"name": "read", "arguments": {"filePath": "src/a.ts"}}', "hermes"],
  [
    "Qwen 3 Coder",
    "<tool_call>\n<function=read>\n<parameter=filePath>\nsrc/a.ts\n</parameter>\n</function>\n</tool_call>",
    "qwen3_coder",
  ],
  [
    "Qwen 3 Coder without the outer tag",
    "<function=read>\n<parameter=filePath>\nsrc/a.ts\n</parameter>\n</function>",
    "qwen3_coder",
  ],
  [
    "DeepSeek V3",
    '<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>read\n```json\n{"filePath": "src/a.ts"}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>',
    "deepseek_v3",
  ],
  [
    "DeepSeek V3.1",
    '<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>read<｜tool▁sep｜>{"filePath": "src/a.ts"}<｜tool▁call▁end｜><｜tool▁calls▁end｜>',
    "deepseek_v31",
  ],
  [
    "DeepSeek V3.2",
    '<｜DSML｜function_calls>\n<｜DSML｜invoke name="read">\n<｜DSML｜parameter name="filePath" string="true">src/a.ts</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜function_calls>',
    "deepseek_v32",
  ],
  [
    "GLM",
    "<tool_call>read\n<arg_key>filePath</arg_key>\n<arg_value>src/a.ts</arg_value>\n</tool_call>",
    "glm45",
  ],
  [
    "Kimi",
    '<|tool_calls_section_begin|><|tool_call_begin|>functions.read:0<|tool_call_argument_begin|>{"filePath": "src/a.ts"}<|tool_call_end|><|tool_calls_section_end|>',
    "kimi_k2",
  ],
  ["MiniMax", `<minimax:tool_call>\n${invoke("")}\n</minimax:tool_call>`, "minimax_m2"],
  ["Claude", `<function_calls>\n${invoke("")}\n</function_calls>`, undefined],
  ["Claude with prefixes", invoke(["antml", ""].join(":")), undefined],
  ["Llama 3 JSON", '{"name": "read", "parameters": {"filePath": "src/a.ts"}}', "llama3_json"],
  [
    "Llama 3 with its token",
    '<|python_tag|>{"name": "read", "parameters": {"filePath": "src/a.ts"}}<|eom_id|>',
    "llama3_json",
  ],
  ["Llama 3 as Python", '<|python_tag|>read.call(filePath="src/a.ts")', "llama3_json"],
  ["Llama 3 as a function tag", '<function=read>{"filePath": "src/a.ts"}</function>', "qwen3_coder"],
  ["Llama 4", '[read(filePath="src/a.ts")]', "llama4_pythonic"],
  ["Mistral's list", '[TOOL_CALLS][{"name": "read", "arguments": {"filePath": "src/a.ts"}}]', "mistral"],
  ["Mistral's arguments", '[TOOL_CALLS]read[ARGS]{"filePath": "src/a.ts"}</s>', "mistral"],
  [
    "Harmony",
    '<|start|>assistant<|channel|>commentary to=functions.read <|constrain|>json<|message|>{"filePath": "src/a.ts"}<|call|>',
    "openai",
  ],
  [
    "JSON in a code block",
    '```json\n{"name": "read", "arguments": {"filePath": "src/a.ts"}}\n```',
    "llama3_json",
  ],
  [
    "JSON as the wire has it",
    '{\n  "type": "function",\n  "function": {"name": "read", "arguments": "{\\"filePath\\": \\"src/a.ts\\"}"}\n}',
    "llama3_json",
  ],
  ["tool_code", '```tool_code\nprint(default_api.read(filePath="src/a.ts", offset=3))\n```', "pythonic"],
  ["Cline", "<read>\n<filePath>src/a.ts</filePath>\n</read>", undefined],
];

describe("a call that is written as text", () => {
  test.each(calls)("%s is found", (_, call, parser) => {
    const expected = { tool: "read", ...(parser !== undefined && { parser }) };
    const beginnings = [
      "",
      "Let me read the file first:\n\n",
      "I need to see the logged output.\n",
      "Done so far.\n\n",
    ];
    for (const beginning of beginnings)
      expect([beginning, find(beginning + call)]).toEqual([beginning, expected]);
    expect(find(`${call}\n\n${call}\n`)).toEqual(expected);
  });

  test.each([
    [
      "behind prose in its line",
      'Let me search the folder: <tool_call>{"name": "list", "arguments": {}}</tool_call>',
      "list",
    ],
    ["without arguments", "<tool_call>todoread</tool_call>", "todoread"],
    [
      "with a name in capitals",
      '<tool_call>{"name": "Read", "arguments": {"filePath": "a"}}</tool_call>',
      "read",
    ],
    [
      "with arguments of many lines",
      `<function=edit>\n<parameter=filePath>a.md</parameter>\n<parameter=newString>\n\`\`\`js\n${"call();\n".repeat(5_000)}\`\`\`\n</parameter>\n</function>`,
      "edit",
    ],
    [
      "behind a code block that is closed",
      'The file has this:\n```ts\nconst a = 1;\n```\nNow let me run it:\n<tool_call>{"name": "bash", "arguments": {"command": "ls"}}</tool_call>',
      "bash",
    ],
    [
      "after a call of another tool",
      '<tool_call>{"name": "read", "arguments": {"filePath": "a"}}</tool_call><tool_call>{"name": "bash", "arguments": {"command": "ls"}}</tool_call>',
      "bash",
    ],
  ])("is found %s", (_, answer, tool) => {
    expect(find(answer)?.tool).toBe(tool);
  });

  test("is looked for in moderate time", () => {
    const openers = [
      "<tool_call>",
      "<function=read>",
      "<parameter=filePath>",
      "[",
      "{",
      "```\n",
      "<read>",
      "a=",
    ];
    for (const opener of openers) expect(find(opener.repeat(50_000))).toBeUndefined();
    expect(find(`<function=read>${"<parameter=a>".repeat(50_000)}</function>`)).toBeUndefined();
    expect(find(`<|python_tag|>read(${"a=b,".repeat(50_000)}`)).toBeUndefined();
  });
});

const hermes = '<tool_call>\n{"name": "read", "arguments": {"filePath": "src/a.ts"}}\n</tool_call>';
const json = '{"name": "read", "arguments": {"filePath": "src/a.ts"}}';
const glm = "<tool_call>read\n<arg_key>filePath</arg_key>\n<arg_value>src/a.ts</arg_value>\n</tool_call>";

const lookAlikes: string[] = [
  // Text follows.
  `${hermes}\nis what the model sent.`,
  `A call of Qwen:\n\`\`\`xml\n${hermes}\n\`\`\`\nThe server must parse it.`,
  `\`\`\`json\n${json}\n\`\`\`\nThat is the payload.`,
  `${json}\n\nThis object is the request.`,
  "```tool_code\nprint(default_api.read(filePath='a'))\n```\nruns the tool.",
  `<function_calls>\n${invoke("")}\n</function_calls>\n\nThat was it.`,
  `[TOOL_CALLS][${json}] has to be parsed by the server.`,
  // Examples and documentation.
  `Hermes models write calls in this format:\n\n${hermes}`,
  `For example:\n${hermes}`,
  `A call looks like this:\n\`\`\`xml\n${hermes}\n\`\`\``,
  `The syntax of GLM:\n\n\`\`\`\n${glm}\n\`\`\``,
  `Each tool call is written as JSON between tags:\n${hermes}`,
  `Here is an example of a request:\n\n\`\`\`json\n${json}\n\`\`\``,
  `The prompt template renders calls, e.g.\n${glm}`,
  `The test's fixture is:\n\`\`\`\n${hermes}\n\`\`\``,
  `Let me show you the format:\n${hermes}`,
  `I'll explain with an example:\n\n${hermes}`,
  `Calls are wrapped in tags:\n\n\`\`\`\n${hermes}\n\`\`\``,
  // Placeholders.
  '<tool_call>\n{"name": "read", "arguments": {"filePath": "..."}}\n</tool_call>',
  '<tool_call>\n{"name": "read", "arguments": {"filePath": "<path>"}}\n</tool_call>',
  '{"name": "read", "arguments": {"filePath": "path/to/file"}}',
  "<read>\n<filePath>path/to/file.ts</filePath>\n</read>",
  '<tool_call>{"name": "bash", "arguments": {"command": "your_command"}}</tool_call>',
  // Quoted logs and comments.
  `2026-01-02 10:11:12 INFO assistant: ${json}`,
  `The server printed:\n${hermes}`,
  `In the log the model wrote:\n\n${hermes}`,
  `The user pasted this:\n\`\`\`\n${hermes}\n\`\`\``,
  `The output of the command was:\n\`\`\`\n$ cat log.txt\n${hermes}\n\`\`\``,
  `> ${hermes.replaceAll("\n", "\n> ")}`,
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
  "<list><item>one</item><item>two</item></list>",
  "```xml\n<edit>\n<author>me</author>\n</edit>\n```",
  "The steps are [read(later)]",
  "See [read](https://example.com)",
  "I changed `read(filePath)` in [a.ts](a.ts)",
  '<tool_call>\n{"name": "read", "arguments": {"filePath": "src/a.ts"\n</tool_call>',
  "<tool_call>",
  "The tags `<tool_call>` and `</tool_call>` are missing in the template.",
  "Done. All tests pass.",
  "",
];

test.each(lookAlikes.map((answer) => [answer]))("%j is no call", (answer) => {
  expect(find(answer)).toBeUndefined();
});
