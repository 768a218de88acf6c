import { isRecord } from "../../base/text/record.ts";
import { announcesStep } from "./announcement.ts";
import type { ToolSpec } from "../model.ts";

/** A tool call that a model wrote as text, because its server did not recognise it or the model wrote it wrongly. */
export interface LeakedCall {
  /** An offered tool. */
  readonly tool: string;
  /** The tool-call parser for the format, as vLLM and SGLang name it. */
  readonly parser?: string;
}

/** Where a call begins, and its parts as they are written. */
interface Written {
  readonly start: number;
  /** Undefined where the JSON names the tool. */
  readonly tool?: string | undefined;
  readonly json?: string | undefined;
  /** Parameters as tags. */
  readonly tags?: string | undefined;
  /** Arguments as those of a function in Python. */
  readonly code?: string | undefined;
}

/** A way in which a family of models writes calls. */
interface CallFormat {
  /** Where the format is described. */
  readonly source: string;
  readonly parser?: string;
  /** Finds a call that ends the text. */
  readonly find: (text: string, tools: Tools) => Written | undefined;
  /** Set where other texts look the same: then the arguments must fit the tool's schema. */
  readonly mustFit?: true;
}

/** Offered tools by their names in lower case. */
type Tools = ReadonlyMap<string, ToolSpec>;

/** Longest end of an answer that is searched, in characters. */
const searchLimit = 100_000;
/** Calls in a row at the end of an answer that are stepped over to find where they begin. */
const runLimit = 20;

/** What may follow a call: closing tags, a closing fence, tokens that end a turn. */
const closing = String.raw`(?:\s|</[\w:\uFF5C|\u2581]+>|<[|\uFF5C][\w\u2581]+[|\uFF5C]>|</?s>|\x60{3,}|~{3,})*$`;
const name = String.raw`["']?(?<tool>[\w.:-]+)["']?`;

/** Finds the last of the openers, and the call as the pattern describes it from there to the end. */
function after(openers: readonly string[], pattern: string): CallFormat["find"] {
  const expression = new RegExp(`^${pattern}${closing}`, "s");
  return (text) => {
    const start = Math.max(...openers.map((opener) => text.lastIndexOf(opener)));
    const groups = start === -1 ? undefined : expression.exec(text.slice(start))?.groups;
    return groups && { start, tool: groups.tool, json: groups.json, tags: groups.tags, code: groups.code };
  };
}

const formats: readonly CallFormat[] = [
  {
    // Hermes, Qwen 2.5 and 3.
    source: "https://docs.vllm.ai/en/stable/features/tool_calling.html",
    parser: "hermes",
    find: after(["<tool_call>"], String.raw`<tool_call>\s*(?:\x60{3}\w*\s*)?(?<json>\{.*\})`),
  },
  {
    // GLM 4.5 and later.
    source: "https://huggingface.co/zai-org/GLM-4.5/blob/main/chat_template.jinja",
    parser: "glm45",
    find: after(
      ["<tool_call>"],
      String.raw`<tool_call>\s*${name}\s*(?<tags>(?:<arg_key>.*</arg_value>)?)\s*</tool_call>`,
    ),
  },
  {
    // Qwen 3 Coder, with or without <tool_call> around it; Llama 3.1 with JSON in it.
    source: "https://huggingface.co/Qwen/Qwen3-Coder-480B-A35B-Instruct/blob/main/chat_template.jinja",
    parser: "qwen3_coder",
    find: after(
      ["<function="],
      String.raw`<function=${name}>(?:\s*(?<json>\{.*\})\s*|(?<tags>.*))</function>`,
    ),
  },
  {
    source: "https://huggingface.co/deepseek-ai/DeepSeek-V3/blob/main/tokenizer_config.json",
    parser: "deepseek_v3",
    find: after(
      ["<｜tool▁call▁begin｜>"],
      String.raw`<\uFF5Ctool\u2581call\u2581begin\uFF5C>\s*function\s*<\uFF5Ctool\u2581sep\uFF5C>\s*${name}\s*\x60{3}json\s*(?<json>\{.*\})`,
    ),
  },
  {
    source: "https://huggingface.co/deepseek-ai/DeepSeek-V3.1/blob/main/README.md",
    parser: "deepseek_v31",
    find: after(
      ["<｜tool▁call▁begin｜>"],
      String.raw`<\uFF5Ctool\u2581call\u2581begin\uFF5C>\s*${name}\s*<\uFF5Ctool\u2581sep\uFF5C>\s*(?<json>\{.*\})`,
    ),
  },
  {
    source: "https://huggingface.co/deepseek-ai/DeepSeek-V3.2/blob/main/encoding/README.md",
    parser: "deepseek_v32",
    find: after(
      ["<｜DSML｜invoke"],
      String.raw`<\uFF5CDSML\uFF5Cinvoke\s+name=${name}\s*>(?<tags>.*)</\uFF5CDSML\uFF5Cinvoke>`,
    ),
  },
  {
    source: "https://github.com/MoonshotAI/Kimi-K2/blob/main/docs/tool_call_guidance.md",
    parser: "kimi_k2",
    find: after(
      ["<|tool_call_begin|>"],
      String.raw`<\|tool_call_begin\|>\s*${name}\s*<\|tool_call_argument_begin\|>\s*(?<json>\{.*\})`,
    ),
  },
  {
    source: "https://huggingface.co/MiniMaxAI/MiniMax-M2/blob/main/docs/tool_calling_guide.md",
    parser: "minimax_m2",
    find: after(
      ["<invoke "],
      String.raw`<invoke\s+name=${name}\s*>(?<tags>.*)</invoke>\s*</minimax:tool_call>`,
    ),
  },
  {
    // Claude, and models that were trained on its answers.
    source: "https://www.anthropic.com/engineering/writing-tools-for-agents",
    find: after(
      ["<invoke ", "<antml:invoke "],
      String.raw`<(?:antml:)?invoke\s+name=${name}\s*>(?<tags>.*)</(?:antml:)?invoke>`,
    ),
  },
  {
    source: "https://www.llama.com/docs/model-cards-and-prompt-formats/llama3_1/",
    parser: "llama3_json",
    find: after(
      ["<|python_tag|>"],
      String.raw`<\|python_tag\|>\s*(?:(?<json>\{.*\})|(?<tool>\w+)(?:\.call)?(?<code>\(.*\)))`,
    ),
  },
  {
    // A list of calls, or a name and [ARGS].
    source: "https://docs.vllm.ai/en/stable/api/vllm/tool_parsers/mistral_tool_parser/",
    parser: "mistral",
    find: after(
      ["[TOOL_CALLS]"],
      String.raw`\[TOOL_CALLS\]\s*(?:(?<tool>[\w.-]+)\s*(?:\[CALL_ID\]\w*)?\s*(?:\[ARGS\])?\s*)?(?<json>[{[].*[}\]])`,
    ),
  },
  {
    source: "https://developers.openai.com/cookbook/articles/openai-harmony",
    parser: "openai",
    find: after(
      ["to=functions."],
      String.raw`to=${name}\s*(?:<\|channel\|>\w*\s*)?(?:<\|constrain\|>)?\s*(?:json)?\s*<\|message\|>\s*(?<json>\{.*\})`,
    ),
  },
  {
    source: "https://ai.google.dev/gemma/docs/capabilities/text/function-calling-gemma3",
    parser: "pythonic",
    find: after(
      ["```tool_code"],
      String.raw`\x60{3}tool_code\s+(?:print\()?(?:default_api\.)?(?<tool>\w+)(?<code>\(.*?\))\)?`,
    ),
  },
  {
    // Llama 4.
    source: "https://www.llama.com/docs/model-cards-and-prompt-formats/llama4/",
    parser: "llama4_pythonic",
    find: after(["["], String.raw`\[(?<tool>\w+)(?<code>\(.*\))\]`),
    mustFit: true,
  },
  {
    // Llama 3 without its token, and what many models write in a fence.
    source: "https://www.llama.com/docs/model-cards-and-prompt-formats/llama3_1/",
    parser: "llama3_json",
    find: findJson,
    mustFit: true,
  },
  {
    source: "https://docs.cline.bot/exploring-clines-tools/cline-tools-guide",
    find: findNamedTag,
    mustFit: true,
  },
];

/** JSON that begins at the start of a line and ends the text. */
function findJson(text: string): Written | undefined {
  const start = Math.max(...["{", "["].map((bracket) => lineStart(text, bracket)));
  const json =
    start === -1 ? undefined : /^([{[].*[}\]])\s*(?:`{3,}|~{3,})?\s*$/s.exec(text.slice(start))?.[1];
  return json === undefined ? undefined : { start, json };
}

function lineStart(text: string, bracket: string): number {
  const at = text.lastIndexOf(`\n${bracket}`);
  return at === -1 ? (text.startsWith(bracket) ? 0 : -1) : at + 1;
}

/** A tag that has the name of a tool, with one tag for each parameter. */
function findNamedTag(text: string, tools: Tools): Written | undefined {
  const [close = "", tool = ""] = /<\/([\w-]+)>\s*(?:`{3,}|~{3,})?\s*$/.exec(text) ?? [];
  const start = tools.has(tool.toLowerCase()) ? text.lastIndexOf(`<${tool}>`) : -1;
  if (start === -1) return undefined;
  return { start, tool, tags: text.slice(start + tool.length + 2, text.length - close.length) };
}

/**
 * Finds a tool call at the end of an answer. The call must name an offered tool and have arguments that parse. Text
 * about calls is not one: an example, a quotation, a code block that text follows.
 */
export function findLeakedCall(answer: string, offered: readonly ToolSpec[]): LeakedCall | undefined {
  const text = answer.trimEnd().slice(-searchLimit);
  const tools = new Map(offered.map((tool) => [tool.name.toLowerCase(), tool]));
  for (const format of formats) {
    const found = callAtEnd(text, format, tools);
    if (found === undefined) continue;
    const start = startOfRun(text.slice(0, found.start), format, tools);
    if (isQuoted(text.slice(0, start)) || hasPlaceholder(found.input)) continue;
    return { tool: found.tool.name, ...(format.parser !== undefined && { parser: format.parser }) };
  }
  return undefined;
}

interface Found {
  readonly start: number;
  readonly tool: ToolSpec;
  readonly input: Readonly<Record<string, unknown>>;
}

function callAtEnd(text: string, { find, mustFit }: CallFormat, tools: Tools): Found | undefined {
  const written = find(text, tools);
  if (written === undefined) return undefined;
  const { tool: named, input } = parse(written);
  const tool = named === undefined ? undefined : tools.get(plainName(named));
  if (tool === undefined || input === undefined || (mustFit && !fits(input, tool))) return undefined;
  return { start: written.start, tool, input };
}

/** Where the first of several calls in a row begins, with the tags around them. */
function startOfRun(before: string, format: CallFormat, tools: Tools): number {
  let text = withoutOpeners(before);
  for (let calls = 1; calls < runLimit; calls++) {
    const earlier = callAtEnd(text, format, tools);
    if (earlier === undefined) break;
    text = withoutOpeners(text.slice(0, earlier.start));
  }
  return text.length;
}

/** Tags and tokens that stand around calls. */
const openers =
  /(?:\s|<tool_calls?>|<(?:antml:)?function_calls>|<minimax:tool_call>|<\uFF5CDSML\uFF5Cfunction_calls>|<[|\uFF5C][\w\u2581]+[|\uFF5C]>(?:assistant|commentary|analysis)?)*$/;

/** Without white space and tags at its end; the line break before them stays. */
function withoutOpeners(text: string): string {
  const rest = text.replace(openers, "");
  return text.slice(rest.length).includes("\n") ? `${rest}\n` : rest;
}

function parse({ tool, json, tags, code }: Written): {
  tool?: string;
  input?: Record<string, unknown> | undefined;
} {
  if (json !== undefined) return parseCallJson(tool, json);
  if (tool === undefined) return {};
  return { tool, input: tags === undefined ? parseKeywords(code ?? "") : parseTags(tags) };
}

/** Members that a call may have in JSON. */
const callMembers = new Set(["name", "function", "arguments", "parameters", "type", "id"]);

function parseCallJson(tool: string | undefined, json: string) {
  const value = parseJson(json);
  const call: unknown = Array.isArray(value) ? value.at(-1) : value;
  if (!isRecord(call)) return {};
  if (tool !== undefined) return { tool, input: call };
  const inner = isRecord(call.function) ? call.function : call;
  const input = parseJson(inner.arguments ?? inner.parameters);
  if (typeof inner.name !== "string" || !isRecord(input)) return {};
  return Object.keys(call).every((key) => callMembers.has(key)) ? { tool: inner.name, input } : {};
}

/** Arguments may be a text of JSON themselves. */
function parseJson(value: unknown): unknown {
  if (typeof value !== "string") return value;
  try {
    return JSON.parse(value);
  } catch {
    return undefined;
  }
}

const openingTag =
  /^\s*<(?:((?:\uFF5CDSML\uFF5C|antml:)?)parameter(?:=|\s+name=)["']?([\w.-]+)["']?[^>]*>|arg_key>\s*([\w.-]+)\s*<\/arg_key>\s*<arg_value>|([\w-]+)>)/;

/** Undefined where something else than parameters is between the tags. */
function parseTags(tags: string): Record<string, unknown> | undefined {
  const input: Record<string, unknown> = {};
  let rest = tags;
  for (let match = openingTag.exec(rest); match !== null; match = openingTag.exec(rest)) {
    const [opening, prefix = "", parameter, key, tag] = match;
    const close = parameter !== undefined ? `</${prefix}parameter>` : `</${tag ?? "arg_value"}>`;
    const end = rest.indexOf(close, opening.length);
    if (end === -1) return undefined;
    input[parameter ?? key ?? tag ?? ""] = rest.slice(opening.length, end).trim();
    rest = rest.slice(end + close.length);
  }
  return rest.trim() === "" ? input : undefined;
}

const keyword =
  /\s*(\w+)\s*=\s*("""(?:.*?)"""|"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|\[[^\]]*\]|\{[^}]*\}|[\w.+-]+)\s*(?:,|(?=\)))/gsy;

/** The keyword arguments of a function in Python: `(path="a", limit=3)`. */
function parseKeywords(code: string): Record<string, unknown> | undefined {
  const input: Record<string, unknown> = {};
  let end = 1;
  for (const match of code.slice(1).matchAll(keyword)) {
    input[match[1] ?? ""] = match[2]?.replaceAll(/^["']+|["']+$/g, "");
    end = 1 + match.index + match[0].length;
  }
  return /^\s*\)$/.test(code.slice(end)) ? input : undefined;
}

/** Kimi writes `functions.read:0`, Gemini `default_api.read`. */
function plainName(written: string): string {
  return written
    .toLowerCase()
    .replace(/^(?:functions?|tools|default_api)[.:]/, "")
    .replace(/:\d+$/, "");
}

/** Whether all required parameters are there, and no unknown one. */
function fits(input: Readonly<Record<string, unknown>>, { schema }: ToolSpec): boolean {
  const properties = isRecord(schema.properties) ? schema.properties : {};
  const required = Array.isArray(schema.required) ? schema.required : [];
  const keys = Object.keys(input);
  return (
    keys.every((key) => Object.hasOwn(properties, key)) && required.every((key) => keys.includes(String(key)))
  );
}

/** What stands for a value in examples. */
const placeholder =
  /^(?:\.{3}|\u2026|<[^<>]*>|\{\{?[\w ]+\}?\}|\[[\w ]+\]|\$\{?[A-Z_]+\}?|(?:\.?\/)?path\/to\/.*|your[_ -].*|(?:some|example)[_ -].*|value\d*|foo|x+|string)$/i;

const hasPlaceholder = (input: Readonly<Record<string, unknown>>): boolean =>
  Object.values(input).some((value) => typeof value === "string" && placeholder.test(value.trim()));

/** Characters before a call in which words about it are looked for. */
const wordsBefore = 240;

/** Words that introduce an example or a quotation. */
const introductions = new RegExp(
  [
    String.raw`\b(?:for example|for instance|e\.g\.|such as|example|sample|snippet|as text|quot(?:e|es|ed|ing)|instead of|looks? like|literal)\b`,
    String.raw`\b(?:format|syntax|markup|notation|template|grammar|schema|fixture|convention)s?\b`,
    String.raw`\b(?:is|are|be|being|gets?|was|were) (?:\w+ )?(?:written|rendered|formatted|encoded|seriali[sz]ed|printed|logged|emitted|sent|represented|wrapped|parsed)\b`,
    String.raw`\b(?:prints?|printed|logs?|logged|emits?|emitted|returns?|returned|replie[sd]|responds?|responded|answers?|answered|writes?|wrote|sends?|sent|says|said|shows?|showed|contains?|contained|expects?|expected|produces?|produced|outputs?|generates?|generated|reads?|got|received|users?|reported|pasted|was|is)\b[^.\n]{0,60}:\s*$`,
  ].join("|"),
  "i",
);

/** The beginning of a line that quotes, lists, comments, assigns or logs. */
const quotingLine = new RegExp(
  [
    String.raw`^\s*(?:>|\||//|#|\*|\d+[.)]\s|\$|%|["'\x60\u201C\u00AB(]|\[|\d{4}-\d|\d\d:\d\d|\d+:|-(?:\s|$)|\w+ ?=)`,
    String.raw`^\s*(?:user|assistant|system|human|ai|model|bot|agent|tool|server|client|info|debug|warn(?:ing)?|error|trace|stdout|stderr|log|input|output|expected|actual|received|request|response|answer|content|message|text|raw|before|after)\b[^:]{0,20}:`,
    String.raw`["'\x60\u201C\u00AB(=]\s*$`,
  ].join("|"),
  "i",
);

/** Whether what comes before a call makes it a quotation or an example. */
function isQuoted(before: string): boolean {
  const fence = openFence(before);
  const prose = fence === undefined ? before : before.slice(0, fence.start);
  if (fence !== undefined && fence.content.trim() !== "") return true;
  const line = prose.slice(prose.lastIndexOf("\n") + 1);
  if (fence === undefined && quotingLine.test(line)) return true;
  if (announcesStep(prose)) return false;
  const paragraph =
    prose
      .trimEnd()
      .slice(-wordsBefore)
      .split(/\n\s*\n/)
      .at(-1) ?? "";
  return introductions.test(paragraph);
}

/** The code block that is still open at the end of the text. */
function openFence(text: string): { start: number; content: string } | undefined {
  let open: { start: number; marker: string; end: number } | undefined;
  for (const match of text.matchAll(/^[ \t]*(`{3,}|~{3,})[^\n]*(?:\n|$)/gm)) {
    const marker = match[1] ?? "";
    if (open === undefined) open = { start: match.index, marker, end: match.index + match[0].length };
    else if (marker.startsWith(open.marker)) open = undefined;
  }
  return open && { start: open.start, content: text.slice(open.end) };
}
