import { parseJson } from "../../../base/text/json.ts";
import { isRecord } from "../../../base/text/record.ts";
import { announcesStep } from "../announcement.ts";
import type { ModelRequest, ToolSpec } from "../../model.ts";
import { matchAt, type RawCall } from "./bodies.ts";
import { beforeCalls, betweenCalls, type CallFormat, formats, type ToolCallParsers } from "./formats.ts";
import { findOpenFence, hasPlaceholder, isQuoted } from "./quotation.ts";

/** A tool call in a text. */
export interface WrittenCall {
  /** An offered tool. */
  readonly tool: string;
  /** The name as written. */
  readonly name: string;
  /** Undefined if the arguments are complete but no valid JSON. */
  readonly input: Readonly<Record<string, unknown>> | undefined;
  /** The arguments as JSON text, or what was written in its place. */
  readonly raw: string;
  /** The part of the answer that contains the call. Those of all calls together are the end of the answer. */
  readonly markup: string;
}

/** The tool calls at the end of an answer. */
export interface WrittenCalls {
  readonly calls: readonly WrittenCall[];
  /** Where the markup begins in the answer. */
  readonly start: number;
  readonly parsers: ToolCallParsers;
  /** Whether the text cannot be an example, so that the calls may be run where the configuration allows it. */
  readonly isCertain: boolean;
}

/** How many characters at the end of an answer are searched. */
const searchLimit = 400_000;
/** Maximum number of consecutive calls at the end of an answer. */
const callLimit = 20;
/** How many beginnings of calls are tried: the first and the last ones. */
const firstStarts = 10;
const lastStarts = 30;
/** How many characters before the first call may belong to its markup. */
const wrapperLimit = 200;

/**
 * Finds tool calls at the end of an answer. The calls must name offered tools and have complete arguments; nothing but
 * closing tags and tokens may follow. Ignores examples, quotations and code blocks followed by text.
 */
export function findWrittenCalls(answer: string, offered: OfferedTools): WrittenCalls | undefined {
  const offset = Math.max(0, answer.length - searchLimit);
  const text = answer.slice(offset);
  const starts = findStarts(text);
  if (starts.tried.length === 0) return undefined;
  const tools = indexTools(offered);
  for (const start of starts.tried) {
    const run = readRun(text, start, tools);
    if (run === undefined) continue;
    const before = trimWrappers(text.slice(0, start));
    const [format] = run.formats;
    if (format === undefined || isQuoted(before)) continue;
    const isLoose = run.formats.some((one) => one.isLoose === true);
    if (run.calls.some(({ input }) => input !== undefined && hasPlaceholder(input, isLoose))) continue;
    const markupStart = findOpenFence(before)?.start ?? before.length;
    const isFirst = starts.firstMarked === undefined || starts.firstMarked >= start;
    const isPlain = !isLoose && findOpenFence(before) === undefined;
    return {
      calls: withMarkup(run.calls, text, markupStart),
      start: offset + markupStart,
      parsers: format.parsers,
      isCertain: isFirst && isMeant(text.slice(0, markupStart), isPlain),
    };
  }
  return undefined;
}

/**
 * Returns whether a call can be nothing but a call: it is all of the answer, follows a sentence that announces a step, or
 * is plain markup that no colon introduces.
 */
function isMeant(before: string, isPlain: boolean): boolean {
  const prose = before.trim();
  return prose === "" || announcesStep(prose) || (isPlain && !prose.endsWith(":"));
}

export type OfferedTools = Pick<ModelRequest, "tools" | "otherToolNames" | "unsentTools">;

/** Offered and unsent tools by lower-case name, other names included. */
type Tools = ReadonlyMap<string, ToolSpec>;

function indexTools({ tools: offered, otherToolNames = new Map(), unsentTools = [] }: OfferedTools): Tools {
  const tools = new Map([...unsentTools, ...offered].map((tool) => [tool.name.toLowerCase(), tool]));
  for (const [other, name] of otherToolNames) {
    const tool = tools.get(name);
    if (tool !== undefined && !tools.has(other)) tools.set(other, tool);
  }
  return tools;
}

/** Kimi writes `functions.read:0`, Gemini `default_api.read`. */
function findTool(written: string, tools: Tools): ToolSpec | undefined {
  const name = written
    .toLowerCase()
    .replace(/^(?:functions?|tools|default_api)[.:]/, "")
    .replace(/:\d+$/, "");
  return tools.get(name);
}

/** Finds where calls may begin, in order. `firstMarked` is the first one that ordinary text does not look like. */
function findStarts(text: string): { tried: readonly number[]; firstMarked: number | undefined } {
  const all = new Set<number>();
  let firstMarked: number | undefined;
  for (const { open, isLoose } of formats) {
    for (const { index } of text.matchAll(new RegExp(open.source, "g"))) {
      all.add(index);
      if (isLoose !== true && index < (firstMarked ?? text.length)) firstMarked = index;
    }
  }
  const sorted = [...all].toSorted((one, other) => one - other);
  const tried = new Set([...sorted.slice(0, firstStarts), ...sorted.slice(-lastStarts)]);
  return { tried: [...tried], firstMarked };
}

interface ReadCall extends Omit<WrittenCall, "markup"> {
  /** Where the call ends in the text. */
  readonly end: number;
}

/** Reads calls from a position to the end of the text. */
function readRun(
  text: string,
  start: number,
  tools: Tools,
): { calls: readonly ReadCall[]; formats: readonly CallFormat[] } | undefined {
  const calls: ReadCall[] = [];
  const used: CallFormat[] = [];
  let at = start;
  while (calls.length < callLimit) {
    const found = readCall(text, at, tools);
    if (found === undefined) break;
    calls.push(...found.calls);
    used.push(found.format);
    at = found.end + (matchAt(betweenCalls, text, found.end)?.[0].length ?? 0);
    if (at >= text.length) return { calls, formats: used };
    // Tags around a call may be part of its opening.
    at = findNextOpening(text, found.end, at);
  }
  return undefined;
}

/** Returns the first position between `from` and `to` where a format opens. */
function findNextOpening(text: string, from: number, to: number): number {
  for (let at = from; at < to; at++)
    if (text[at] === "<" && formats.some(({ open }) => matchAt(open, text, at) !== undefined)) return at;
  return to;
}

function readCall(
  text: string,
  at: number,
  tools: Tools,
): { calls: readonly ReadCall[]; format: CallFormat; end: number } | undefined {
  for (const format of formats) {
    const opening = matchAt(format.open, text, at);
    if (opening === undefined) continue;
    const bodyStart = at + opening[0].length;
    const body = format.body(text, bodyStart, opening.groups?.tool, format.close);
    const closing = body && format.close ? matchAt(format.close, text, body.end) : undefined;
    if (body === undefined || (format.close !== undefined && closing === undefined)) continue;
    const end = body.end + (closing?.[0].length ?? 0);
    const calls = body.calls.map((call) => resolveCall(call, format, tools));
    const known = calls.filter((call) => call !== undefined);
    if (known.length < calls.length) continue;
    return { calls: known.map((call) => ({ ...call, end })), format, end };
  }
  return undefined;
}

function resolveCall(call: RawCall, { isLoose }: CallFormat, tools: Tools) {
  const spec = findTool(call.tool, tools);
  if (spec === undefined) return undefined;
  if (call.input === undefined)
    return isLoose
      ? undefined
      : { tool: spec.name, name: call.tool, input: undefined, raw: call.malformed ?? "" };
  if (isLoose && (call.lacksArguments === true || !fitsSchema(call.input, spec))) return undefined;
  const input = call.hasTextValues ? readValues(call.input, spec) : call.input;
  return { tool: spec.name, name: call.tool, input, raw: JSON.stringify(input) };
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

/** Parses the values whose parameters are not texts, as servers do for formats without types. */
function readValues(input: Readonly<Record<string, unknown>>, { schema }: ToolSpec): Record<string, unknown> {
  const properties = isRecord(schema.properties) ? schema.properties : {};
  return Object.fromEntries(
    Object.entries(input).map(([key, value]) => {
      const property = Object.hasOwn(properties, key) ? properties[key] : undefined;
      if (typeof value !== "string" || property === undefined || acceptsText(property)) return [key, value];
      return [
        key,
        parseJson(value.trim().replace(/^(?:True|False)$/, (word) => word.toLowerCase())) ?? value,
      ];
    }),
  );
}

function acceptsText(property: unknown): boolean {
  if (!isRecord(property)) return true;
  const { type, anyOf, oneOf } = property;
  const alternatives = anyOf ?? oneOf;
  if (Array.isArray(alternatives)) return alternatives.some(acceptsText);
  if (type === undefined || Array.isArray(property.enum)) return true;
  return Array.isArray(type) ? type.includes("string") : type === "string";
}

/** Removes white space and tags at the end, but not the line break before them. */
function trimWrappers(before: string): string {
  const tail = before.slice(-wrapperLimit);
  const wrapper = beforeCalls.exec(tail)?.[0] ?? "";
  const rest = before.slice(0, before.length - wrapper.length);
  return wrapper.includes("\n") ? `${rest}\n` : rest;
}

/** Divides the text from `start` among the calls. Calls of one list share its text: the first one has it. */
function withMarkup(calls: readonly ReadCall[], text: string, start: number): WrittenCall[] {
  let from = start;
  return calls.map(({ end, ...call }, index) => {
    const to = index === calls.length - 1 ? text.length : Math.max(from, end);
    const markup = text.slice(from, to);
    from = to;
    return { ...call, markup };
  });
}

/** Where a cut call may name its tool in JSON. */
const nameInJson = /^\s*\[?\s*\{\s*["'](?:name|tool_name)["']\s*:\s*["']([\w.:-]+)["']/;

/** Finds a call whose arguments end with the text. Only markup that ordinary text does not look like counts. */
export function findCutCall(
  answer: string,
  offered: OfferedTools,
): { readonly tool: string; readonly start: number } | undefined {
  const offset = Math.max(0, answer.length - searchLimit);
  const text = answer.slice(offset);
  const tools = indexTools(offered);
  const { firstMarked } = findStarts(text);
  const before = firstMarked === undefined ? "" : trimWrappers(text.slice(0, firstMarked));
  if (firstMarked === undefined || isQuoted(before)) return undefined;
  for (const { open, isLoose } of formats) {
    const opening = isLoose === true ? undefined : matchAt(open, text, firstMarked);
    if (opening === undefined) continue;
    const rest = text.slice(firstMarked + opening[0].length);
    const named = opening.groups?.tool ?? nameInJson.exec(rest)?.[1];
    const tool = named === undefined ? undefined : findTool(named, tools);
    if (tool !== undefined) return { tool: tool.name, start: offset + before.length };
  }
  return undefined;
}
