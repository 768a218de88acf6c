import { isRecord } from "../../base/text/record.ts";
import { announcesStep } from "./announcement.ts";
import type { ToolSpec } from "../model.ts";

/** A tool call that arrived as text: the server did not recognise its format, or the model wrote it wrongly. */
export interface LeakedCall {
  /** An offered tool. */
  readonly tool: string;
  /** The tool-call parser for the format, as vLLM and SGLang name it. */
  readonly parser?: string;
}

/** A call as found in the text, not yet parsed. */
interface UnparsedCall {
  readonly start: number;
  /** Undefined where the JSON names the tool. */
  readonly tool?: string | undefined;
  readonly json?: string | undefined;
  /** Parameters as tags. */
  readonly tags?: string | undefined;
  /** Arguments of a Python function call. */
  readonly code?: string | undefined;
}

/** The call syntax of a model family. */
interface CallFormat {
  /** Where the format is described. */
  readonly source: string;
  readonly parser?: string;
  /** Finds a call that ends the text. */
  readonly find: (text: string, tools: Tools) => UnparsedCall | undefined;
  /** Set if ordinary text may look the same. The arguments must then fit the tool's schema. */
  readonly mustFit?: true;
}

/** Offered tools by lower-case name. */
type Tools = ReadonlyMap<string, ToolSpec>;

/** How many characters at the end of an answer are searched. */
const searchLimit = 100_000;
/** Maximum number of consecutive calls at the end of an answer. */
const runLimit = 20;

/** What may follow a call: closing tags, a closing fence, tokens that end a turn. */
const closing = String.raw`(?:\s|</[\w:\uFF5C|\u2581]+>|<[|\uFF5C][\w\u2581]+[|\uFF5C]>|</?s>|\x60{3,}|~{3,})*$`;
const name = String.raw`["']?(?<tool>[\w.:-]+)["']?`;

/** Creates a finder that matches the pattern from the last opener to the end of the text. */
function createFinder(openers: readonly string[], pattern: string): CallFormat["find"] {
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
    find: createFinder(["<tool_call>"], String.raw`<tool_call>\s*(?:\x60{3}\w*\s*)?(?<json>\{.*\})`),
  },
  {
    // GLM 4.5 and later.
    source: "https://huggingface.co/zai-org/GLM-4.5/blob/main/chat_template.jinja",
    parser: "glm45",
    find: createFinder(
      ["<tool_call>"],
      String.raw`<tool_call>\s*${name}\s*(?<tags>(?:<arg_key>.*</arg_value>)?)\s*</tool_call>`,
    ),
  },
  {
    // Qwen 3 Coder, with or without <tool_call> around it; Llama 3.1 with JSON in it.
    source: "https://huggingface.co/Qwen/Qwen3-Coder-480B-A35B-Instruct/blob/main/chat_template.jinja",
    parser: "qwen3_coder",
    find: createFinder(
      ["<function="],
      String.raw`<function=${name}>(?:\s*(?<json>\{.*\})\s*|(?<tags>.*))</function>`,
    ),
  },
  {
    source: "https://huggingface.co/deepseek-ai/DeepSeek-V3/blob/main/tokenizer_config.json",
    parser: "deepseek_v3",
    find: createFinder(
      ["<｜tool▁call▁begin｜>"],
      String.raw`<\uFF5Ctool\u2581call\u2581begin\uFF5C>\s*function\s*<\uFF5Ctool\u2581sep\uFF5C>\s*${name}\s*\x60{3}json\s*(?<json>\{.*\})`,
    ),
  },
  {
    source: "https://huggingface.co/deepseek-ai/DeepSeek-V3.1/blob/main/README.md",
    parser: "deepseek_v31",
    find: createFinder(
      ["<｜tool▁call▁begin｜>"],
      String.raw`<\uFF5Ctool\u2581call\u2581begin\uFF5C>\s*${name}\s*<\uFF5Ctool\u2581sep\uFF5C>\s*(?<json>\{.*\})`,
    ),
  },
  {
    source: "https://huggingface.co/deepseek-ai/DeepSeek-V3.2/blob/main/encoding/README.md",
    parser: "deepseek_v32",
    find: createFinder(
      ["<｜DSML｜invoke"],
      String.raw`<\uFF5CDSML\uFF5Cinvoke\s+name=${name}\s*>(?<tags>.*)</\uFF5CDSML\uFF5Cinvoke>`,
    ),
  },
  {
    source: "https://github.com/MoonshotAI/Kimi-K2/blob/main/docs/tool_call_guidance.md",
    parser: "kimi_k2",
    find: createFinder(
      ["<|tool_call_begin|>"],
      String.raw`<\|tool_call_begin\|>\s*${name}\s*<\|tool_call_argument_begin\|>\s*(?<json>\{.*\})`,
    ),
  },
  {
    source: "https://huggingface.co/MiniMaxAI/MiniMax-M2/blob/main/docs/tool_calling_guide.md",
    parser: "minimax_m2",
    find: createFinder(
      ["<invoke "],
      String.raw`<invoke\s+name=${name}\s*>(?<tags>.*)</invoke>\s*</minimax:tool_call>`,
    ),
  },
  {
    // Claude, and models that were trained on its answers.
    source: "https://www.anthropic.com/engineering/writing-tools-for-agents",
    find: createFinder(
      ["<invoke ", "<antml:invoke "],
      String.raw`<(?:antml:)?invoke\s+name=${name}\s*>(?<tags>.*)</(?:antml:)?invoke>`,
    ),
  },
  {
    source: "https://www.llama.com/docs/model-cards-and-prompt-formats/llama3_1/",
    parser: "llama3_json",
    find: createFinder(
      ["<|python_tag|>"],
      String.raw`<\|python_tag\|>\s*(?:(?<json>\{.*\})|(?<tool>\w+)(?:\.call)?(?<code>\(.*\)))`,
    ),
  },
  {
    // A list of calls, or a name and [ARGS].
    source: "https://docs.vllm.ai/en/stable/api/vllm/tool_parsers/mistral_tool_parser/",
    parser: "mistral",
    find: createFinder(
      ["[TOOL_CALLS]"],
      String.raw`\[TOOL_CALLS\]\s*(?:(?<tool>[\w.-]+)\s*(?:\[CALL_ID\]\w*)?\s*(?:\[ARGS\])?\s*)?(?<json>[{[].*[}\]])`,
    ),
  },
  {
    source: "https://developers.openai.com/cookbook/articles/openai-harmony",
    parser: "openai",
    find: createFinder(
      ["to=functions."],
      String.raw`to=${name}\s*(?:<\|channel\|>\w*\s*)?(?:<\|constrain\|>)?\s*(?:json)?\s*<\|message\|>\s*(?<json>\{.*\})`,
    ),
  },
  {
    source: "https://ai.google.dev/gemma/docs/capabilities/text/function-calling-gemma3",
    parser: "pythonic",
    find: createFinder(
      ["```tool_code"],
      String.raw`\x60{3}tool_code\s+(?:print\()?(?:default_api\.)?(?<tool>\w+)(?<code>\(.*?\))\)?`,
    ),
  },
  {
    // Llama 4.
    source: "https://www.llama.com/docs/model-cards-and-prompt-formats/llama4/",
    parser: "llama4_pythonic",
    find: createFinder(["["], String.raw`\[(?<tool>\w+)(?<code>\(.*\))\]`),
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
function findJson(text: string): UnparsedCall | undefined {
  const start = Math.max(...["{", "["].map((bracket) => lineStart(text, bracket)));
  const json =
    start === -1 ? undefined : /^([{[].*[}\]])\s*(?:`{3,}|~{3,})?\s*$/s.exec(text.slice(start))?.[1];
  return json === undefined ? undefined : { start, json };
}

function lineStart(text: string, bracket: string): number {
  const at = text.lastIndexOf(`\n${bracket}`);
  return at === -1 ? (text.startsWith(bracket) ? 0 : -1) : at + 1;
}

/** Finds a tag named like a tool, with one nested tag per parameter. */
function findNamedTag(text: string, tools: Tools): UnparsedCall | undefined {
  const [close = "", tool = ""] = /<\/([\w-]+)>\s*(?:`{3,}|~{3,})?\s*$/.exec(text) ?? [];
  const start = tools.has(tool.toLowerCase()) ? text.lastIndexOf(`<${tool}>`) : -1;
  if (start === -1) return undefined;
  return { start, tool, tags: text.slice(start + tool.length + 2, text.length - close.length) };
}

/**
 * Finds a tool call at the end of an answer. The call must name an offered tool and have arguments that parse. Ignores
 * examples, quotations and code blocks followed by text.
 */
export function findLeakedCall(answer: string, offered: readonly ToolSpec[]): LeakedCall | undefined {
  const text = answer.trimEnd().slice(-searchLimit);
  const tools = new Map(offered.map((tool) => [tool.name.toLowerCase(), tool]));
  for (const format of formats) {
    const found = findCallAtEnd(text, format, tools);
    if (found === undefined) continue;
    const start = findRunStart(text.slice(0, found.start), format, tools);
    if (isQuoted(text.slice(0, start)) || hasPlaceholder(found.input)) continue;
    return { tool: found.tool.name, ...(format.parser !== undefined && { parser: format.parser }) };
  }
  return undefined;
}

interface ParsedCall {
  readonly start: number;
  readonly tool: ToolSpec;
  readonly input: Readonly<Record<string, unknown>>;
}

function findCallAtEnd(text: string, { find, mustFit }: CallFormat, tools: Tools): ParsedCall | undefined {
  const written = find(text, tools);
  if (written === undefined) return undefined;
  const { tool: named, input } = parseCall(written);
  const tool = named === undefined ? undefined : tools.get(normalizeToolName(named));
  if (tool === undefined || input === undefined || (mustFit && !fitsSchema(input, tool))) return undefined;
  return { start: written.start, tool, input };
}

/** Returns the start of the first of several consecutive calls, including the tags around them. */
function findRunStart(before: string, format: CallFormat, tools: Tools): number {
  let text = trimOpeners(before);
  for (let calls = 1; calls < runLimit; calls++) {
    const earlier = findCallAtEnd(text, format, tools);
    if (earlier === undefined) break;
    text = trimOpeners(text.slice(0, earlier.start));
  }
  return text.length;
}

/** Tags and tokens that surround calls. */
const openers =
  /(?:\s|<tool_calls?>|<(?:antml:)?function_calls>|<minimax:tool_call>|<\uFF5CDSML\uFF5Cfunction_calls>|<[|\uFF5C][\w\u2581]+[|\uFF5C]>(?:assistant|commentary|analysis)?)*$/;

/** Removes white space and tags at the end, but not the line break before them. */
function trimOpeners(text: string): string {
  const rest = text.replace(openers, "");
  return text.slice(rest.length).includes("\n") ? `${rest}\n` : rest;
}

function parseCall({ tool, json, tags, code }: UnparsedCall): {
  tool?: string;
  input?: Record<string, unknown> | undefined;
} {
  if (json !== undefined) return parseCallJson(tool, json);
  if (tool === undefined) return {};
  return { tool, input: tags === undefined ? parseKeywords(code ?? "") : parseTags(tags) };
}

/** Allowed keys of a call in JSON. */
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

/** Parses strings; arguments may be JSON in a string. */
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

/** Returns undefined if there is anything but parameters between the tags. */
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

/** Parses the keyword arguments of a Python function call: `(path="a", limit=3)`. */
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
function normalizeToolName(written: string): string {
  return written
    .toLowerCase()
    .replace(/^(?:functions?|tools|default_api)[.:]/, "")
    .replace(/:\d+$/, "");
}

/** Returns whether the input has all required parameters and no unknown ones. */
function fitsSchema(input: Readonly<Record<string, unknown>>, { schema }: ToolSpec): boolean {
  const properties = isRecord(schema.properties) ? schema.properties : {};
  const required = Array.isArray(schema.required) ? schema.required : [];
  const keys = Object.keys(input);
  return (
    keys.every((key) => Object.hasOwn(properties, key)) && required.every((key) => keys.includes(String(key)))
  );
}

/** Placeholder values in examples. */
const placeholder =
  /^(?:\.{3}|\u2026|<[^<>]*>|\{\{?[\w ]+\}?\}|\[[\w ]+\]|\$\{?[A-Z_]+\}?|(?:\.?\/)?path\/to\/.*|your[_ -].*|(?:some|example)[_ -].*|value\d*|foo|x+|string)$/i;

const hasPlaceholder = (input: Readonly<Record<string, unknown>>): boolean =>
  Object.values(input).some((value) => typeof value === "string" && placeholder.test(value.trim()));

/** How many characters before a call are searched for {@link introductions}. */
const introductionLimit = 240;

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

/** Returns whether the text before a call makes it a quotation or an example. */
function isQuoted(before: string): boolean {
  const fence = findOpenFence(before);
  const prose = fence === undefined ? before : before.slice(0, fence.start);
  if (fence !== undefined && fence.content.trim() !== "") return true;
  const line = prose.slice(prose.lastIndexOf("\n") + 1);
  if (fence === undefined && quotingLine.test(line)) return true;
  if (announcesStep(prose)) return false;
  const paragraph =
    prose
      .trimEnd()
      .slice(-introductionLimit)
      .split(/\n\s*\n/)
      .at(-1) ?? "";
  return introductions.test(paragraph);
}

/** Returns the code block that is still open at the end of the text. */
function findOpenFence(text: string): { start: number; content: string } | undefined {
  let open: { start: number; marker: string; end: number } | undefined;
  for (const match of text.matchAll(/^[ \t]*(`{3,}|~{3,})[^\n]*(?:\n|$)/gm)) {
    const marker = match[1] ?? "";
    if (open === undefined) open = { start: match.index, marker, end: match.index + match[0].length };
    else if (marker.startsWith(open.marker)) open = undefined;
  }
  return open && { start: open.start, content: text.slice(open.end) };
}
