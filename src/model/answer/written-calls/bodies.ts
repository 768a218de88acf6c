import { parseJson } from "../../../base/text/json.ts";
import { isRecord } from "../../../base/text/record.ts";
import { parseNamedArguments } from "./literals.ts";

/** A call as the text has it: the name is not checked. */
export interface RawCall {
  readonly tool: string;
  /** Undefined if the arguments are complete but no valid JSON; see `malformed`. */
  readonly input?: Readonly<Record<string, unknown>> | undefined;
  readonly malformed?: string;
  /** Whether all values are texts because the format has no types. */
  readonly hasTextValues?: true;
  /** Whether the text has no arguments. */
  readonly lacksArguments?: true;
}

export interface Body {
  readonly calls: readonly RawCall[];
  /** Where the body ends in the text. */
  readonly end: number;
}

/**
 * Parses what follows the opening of a format. `tool` is the name in the opening, undefined if the body names it. `close`
 * is the closing of the format. Returns undefined if the text is not a complete body.
 */
export type ParseBody = (
  text: string,
  at: number,
  tool: string | undefined,
  close: RegExp | undefined,
) => Body | undefined;

/** Matches at a position; undefined if it does not. */
export function matchAt(pattern: RegExp, text: string, at: number): RegExpExecArray | undefined {
  pattern.lastIndex = at;
  return pattern.exec(text) ?? undefined;
}

/** An object or list in JSON: the arguments if `tool` is known, otherwise calls. */
export const jsonBody: ParseBody = (text, at, tool) => {
  const end = findJsonEnd(text, at);
  if (end === undefined) return undefined;
  const raw = text.slice(at, end);
  const value = parseJson(raw);
  if (tool !== undefined) {
    if (isRecord(value)) return { calls: [{ tool, input: value }], end };
    return value === undefined && raw.startsWith("{")
      ? { calls: [{ tool, malformed: raw }], end }
      : undefined;
  }
  const calls = value === undefined ? readMalformed(raw) : toCalls(value);
  return calls && { calls, end };
};

/** Returns the index after the bracket that closes the one at `start`. */
function findJsonEnd(text: string, start: number): number | undefined {
  if (text[start] !== "{" && text[start] !== "[") return undefined;
  let depth = 0;
  let isInText = false;
  for (let at = start; at < text.length; at++) {
    const sign = text[at];
    if (sign === "\\" && isInText) at++;
    else if (sign === '"') isInText = !isInText;
    else if (isInText) continue;
    else if (sign === "{" || sign === "[") depth++;
    else if ((sign === "}" || sign === "]") && --depth === 0) return at + 1;
  }
  return undefined;
}

/** Keys that a call in JSON may have. */
const nameKeys = ["name", "tool_name", "tool", "function"] as const;
const argumentKeys = ["arguments", "parameters", "args", "input"] as const;
const callKeys: ReadonlySet<string> = new Set([
  ...nameKeys,
  ...argumentKeys,
  "type",
  "id",
  "tool_call_id",
  "index",
]);

/** Reads calls from JSON. Returns undefined if it is anything else. */
function toCalls(value: unknown): readonly RawCall[] | undefined {
  if (Array.isArray(value)) {
    const calls = value.map((one: unknown) => (isRecord(one) ? toCall(one) : undefined));
    const found = calls.filter((call) => call !== undefined);
    return found.length > 0 && found.length === calls.length ? found : undefined;
  }
  if (!isRecord(value)) return undefined;
  const { tool_calls: list, ...others } = value;
  if (Array.isArray(list) && Object.keys(others).length === 0) return toCalls(list);
  const call = toCall(value);
  return call && [call];
}

function toCall(value: Readonly<Record<string, unknown>>): RawCall | undefined {
  if (!Object.keys(value).every((key) => callKeys.has(key))) return undefined;
  const inner = isRecord(value.function) ? value.function : value;
  const tool = nameKeys.map((key) => inner[key]).find((name) => typeof name === "string");
  if (tool === undefined) return undefined;
  const written = argumentKeys.map((key) => inner[key]).find((one) => one !== undefined && one !== null);
  if (written === undefined) return { tool, input: {}, lacksArguments: true };
  const input = typeof written === "string" ? parseJson(written) : written;
  if (isRecord(input)) return { tool, input };
  return typeof written === "string" && input === undefined ? { tool, malformed: written } : undefined;
}

const malformedName = /["'](?:name|tool_name)["']\s*:\s*["']([\w.:-]+)["']/;
const malformedArguments = /["'](?:arguments|parameters)["']\s*:\s*(?=\{)/;

/** Finds name and arguments in JSON with mistakes, such as a trailing comma. */
function readMalformed(raw: string): readonly RawCall[] | undefined {
  const tool = malformedName.exec(raw)?.[1];
  const before = malformedArguments.exec(raw);
  if (tool === undefined || before === null || !raw.startsWith("{")) return undefined;
  const start = before.index + before[0].length;
  const end = findJsonEnd(raw, start);
  return end === undefined ? undefined : [{ tool, malformed: raw.slice(start, end) }];
}

/** The tags of a parameter. `start` begins each opening. */
interface ParameterTags {
  readonly open: RegExp;
  readonly start: (match: RegExpExecArray) => string;
  readonly close: (match: RegExpExecArray) => string;
}

/** The opening of a parameter: of Qwen, Claude, MiniMax and DeepSeek, of GLM, of Kimi K3, or a tag named like it. */
const parameterTags: readonly ParameterTags[] = [
  {
    open: /\s*<((?:antml:)?)parameter(?:=|\s+name=)["']?([\w.-]+)["']?[^>]*>/y,
    start: ([, prefix = ""]) => `<${prefix}parameter`,
    close: ([, prefix = ""]) => `</${prefix}parameter>`,
  },
  {
    open: /\s*<([|\uFF5C\u2016 ]{1,4}DSML[|\uFF5C\u2016 ]{1,4})parameter\s+name=["']([\w.-]+)["'][^>]*>/y,
    start: ([, prefix = ""]) => `<${prefix}parameter`,
    close: ([, prefix = ""]) => `</${prefix}parameter>`,
  },
  {
    open: /\s*<((?:longcat_)?)arg_key>\s*([\w.-]+)\s*<\/(?:longcat_)?arg_key>\s*<(?:longcat_)?arg_value>/y,
    start: ([, prefix = ""]) => `<${prefix}arg_value>`,
    close: ([, prefix = ""]) => `</${prefix}arg_value>`,
  },
  {
    open: /\s*<\|open\|>(argument) key="([\w.-]+)"[^<>]*<\|sep\|>/y,
    start: () => "<|open|>argument",
    close: () => "<|close|>argument<|sep|>",
  },
  {
    open: /\s*<()([A-Za-z][\w-]*)>/y,
    start: ([, , name = ""]) => `<${name}>`,
    close: ([, , name = ""]) => `</${name}>`,
  },
];

/** How many closing tags of a parameter are tried: its value may contain the same tag. */
const closingLimit = 50;

/** One tag per parameter. */
export const tagsBody: ParseBody = (text, start, tool, close) => {
  if (tool === undefined) return undefined;
  const input: Record<string, unknown> = {};
  let at = start;
  for (let found = findParameter(text, at); found !== undefined; found = findParameter(text, at)) {
    const end = findParameterEnd(text, found, close);
    if (end === undefined || Object.hasOwn(input, found.name)) return undefined;
    input[found.name] = text
      .slice(found.valueStart, end)
      .replace(/^\r?\n/, "")
      .replace(/\r?\n$/, "");
    at = end + found.closing.length;
  }
  return { calls: [{ tool, input, hasTextValues: true }], end: at };
};

interface Parameter {
  readonly name: string;
  readonly valueStart: number;
  readonly opening: string;
  readonly closing: string;
}

function findParameter(text: string, at: number): Parameter | undefined {
  for (const { open, start, close } of parameterTags) {
    const match = matchAt(open, text, at);
    if (match === undefined) continue;
    const valueStart = at + match[0].length;
    return { name: match[2] ?? "", valueStart, opening: start(match), closing: close(match) };
  }
  return undefined;
}

/**
 * Finds the closing tag that another parameter or the end of the call follows. A value that opens more parameters than it
 * closes is the end of a cut call and the beginning of another one.
 */
function findParameterEnd(
  text: string,
  { valueStart, opening, closing }: Parameter,
  close: RegExp | undefined,
): number | undefined {
  let end = text.indexOf(closing, valueStart);
  for (let tries = 0; end !== -1 && tries < closingLimit; tries++) {
    const next = end + closing.length;
    const opened = text.slice(valueStart, end).split(opening).length - 1;
    if (opened <= tries) {
      if (close === undefined || matchAt(close, text, next) !== undefined) return end;
      if (findParameter(text, next) !== undefined) return end;
    }
    end = text.indexOf(closing, next);
  }
  return undefined;
}

/** The named arguments of a function in brackets. */
export const argumentsBody: ParseBody = (text, at, tool) => {
  const found = tool === undefined ? undefined : parseNamedArguments(text, at);
  return tool === undefined || found === undefined
    ? undefined
    : { calls: [{ tool, input: found.input }], end: found.end };
};

const functionName = /\s*(?:,\s*)?(?:default_api\.)?([A-Za-z_][\w.]*)(?=\()/y;

/** One or more functions with named arguments, separated by commas or lines. */
export const functionsBody: ParseBody = (text, start) => {
  const calls: RawCall[] = [];
  let at = start;
  for (
    let name = matchAt(functionName, text, at);
    name !== undefined;
    name = matchAt(functionName, text, at)
  ) {
    const found = parseNamedArguments(text, at + name[0].length);
    if (found === undefined) return undefined;
    calls.push({ tool: name[1] ?? "", input: found.input });
    at = found.end;
  }
  return calls.length === 0 ? undefined : { calls, end: at };
};
