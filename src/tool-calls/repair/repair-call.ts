import { isRecord } from "../../base/text/record.ts";
import { describeInputProblem, describeUnknownTool, type InputIssues } from "../../tool/invalid.ts";
import type { Tool } from "../../tool/tool.ts";
import { findSchema } from "../tool-schema.ts";
import { decodeText, parseTolerantJson } from "./json-text.ts";
import { normalizeKey } from "./keys.ts";
import { Repairs } from "./repairs.ts";
import type { Schema } from "./schema.ts";
import { repairObject } from "./values.ts";
import { unwrapArguments, wrapBareValue } from "./wrapped-arguments.ts";

/** Tools by name. */
export type ToolsByName = ReadonlyMap<string, Tool>;

/** A call as the model wrote it. */
export interface ModelCall {
  tool: string;
  input: unknown;
  /** Why the call cannot be run, as a text for the model. */
  problem?: string | undefined;
  /** Complete arguments that are no JSON object. Not set for a call that was cut off. */
  malformed?: string | undefined;
  /** The call that contained this one. */
  wrapper?: CallWrapper | undefined;
  /** The tool through which the model called this one. */
  through?: string | undefined;
  /** Whether the problem is the whole answer, whatever the tool is. */
  isRefused?: boolean;
}

/** A call of a model that contains other calls. */
export interface CallWrapper {
  readonly name: string;
  /** Position of the contained call, from 0. */
  readonly index: number;
  readonly count: number;
}

/** A call that can be run, or the problem as a text for the model. */
export type CheckedCall = RunnableCall | { readonly problem: string };

export interface RunnableCall {
  readonly tool: Tool;
  /** The parsed input. */
  readonly input: unknown;
  /** The input before parsing, as stored, shown and sent to the permission rules. */
  readonly shown: unknown;
  readonly repairs: Repairs;
}

/** Finds out what a call means. Valid calls are not changed. `isUnseen`: requests lack the tool's parameters. */
export function checkCall(
  call: ModelCall,
  tool: Tool | undefined,
  tools: ToolsByName,
  isUnseen = false,
): CheckedCall {
  if (call.isRefused === true) return { problem: call.problem ?? "" };
  if (tool === undefined) {
    const lead = call.problem === undefined ? "" : `${call.problem}\n`;
    return { problem: lead + describeUnknownTool(call.tool, stripName(call.tool), [...tools.values()]) };
  }
  const repairs = new Repairs();
  const { wrapper } = call;
  if (wrapper !== undefined)
    repairs.add("split", `call ${wrapper.index + 1} of ${wrapper.count}`, wrapper.name);
  // A difference in case alone is not worth a line, nor is a prefix that belongs to the wrapper.
  const name = wrapper === undefined ? call.tool : stripName(call.tool);
  if (name.toLowerCase() !== tool.name.toLowerCase()) repairs.add("name", tool.name, call.tool);
  const written = readInput(call, tool, repairs);
  if ("problem" in written) return written;
  const schema = findSchema(tool);
  const shown = schema === undefined ? written.input : repairInput(written.input, tool, schema, repairs);
  const missing = isUnseen && schema !== undefined ? findMissing(schema, shown) : { issues: [] };
  if (missing.issues.length > 0) {
    const problem = describeInputProblem(missing, { schema, sent: written.input, used: shown });
    return { problem: `${problem}\nTo see them all, call tool_search with "select:${tool.name}".` };
  }
  const parsed = tool.input.safeParse(shown);
  if (!parsed.success)
    return { problem: describeInputProblem(parsed.error, { schema, sent: written.input, used: shown }) };
  const isAsSent =
    call.problem === undefined && repairs.steps.every((step) => step === "name" || step === "split");
  return { tool, input: parsed.data, shown: isAsSent ? call.input : shown, repairs };
}

/** Finds required parameters that are missing, so that the user is not asked about a call that must fail. */
function findMissing({ required }: Schema, input: unknown): InputIssues {
  const needed: readonly unknown[] = isRecord(input) && Array.isArray(required) ? required : [];
  const missing = needed.filter((key) => typeof key === "string" && !Object.hasOwn(Object(input), key));
  return { issues: missing.map((key) => ({ path: [String(key)], message: "is required" })) };
}

function readInput(call: ModelCall, tool: Tool, repairs: Repairs): { input: unknown } | { problem: string } {
  if (call.problem === undefined) return { input: call.input };
  if (call.malformed === undefined) return { problem: call.problem };
  const isHarmless = harmlessKinds.has(tool.kind);
  const options = { mayHaveProse: true, mayComplete: isHarmless, mayGuessEscapes: isHarmless };
  const found = parseTolerantJson(call.malformed, options);
  if (found === undefined) return { problem: call.problem };
  for (const problem of found.problems) repairs.add("json", "JSON", problem);
  return { input: decodeText(found.value) };
}

/** Kinds of tools for which arguments may be completed. */
const harmlessKinds: ReadonlySet<Tool["kind"]> = new Set(["read", "search", "fetch", "think"]);

function repairInput(input: unknown, tool: Tool, schema: Schema, repairs: Repairs): unknown {
  const { aliases = {} } = tool;
  const bare = isRecord(input) ? input : wrapBareValue(input, schema, repairs);
  if (!isRecord(bare)) return bare;
  const value = unwrapArguments(bare, schema, aliases, repairs);
  const isClosed = tool.schema === undefined || schema.additionalProperties === false;
  return repairObject(value, schema, { aliases, isClosed, runsCommands: tool.kind === "execute", repairs });
}

/** What models add before a name: namespaces of GPT, of Gemini, of MCP. */
const prefixes = /^(?:functions?|tools?|default_api|mcp|multi_tool_use|assistant)(?:[.:/]+|__)|^functions_/i;
/** What models add after a name: tokens of a chat template, a call's number, `()`. */
const suffixes = /(?:<[|\uFF5C].*|:\d+|\(\)|[.:]+)$/s;

/** Longest name that is looked up, in characters. */
const nameLimit = 200;

/**
 * Finds the tool that a name means: exactly, in lower case, without prefix and suffix, without case and `_-`, by the
 * tools' other names, without "tool" at its end, then without the name of its server. Undefined if there is none or more
 * than one.
 */
export function findTool(name: string, tools: ToolsByName): Tool | undefined {
  const exact = tools.get(name) ?? tools.get(name.toLowerCase());
  if (exact !== undefined || name.length > nameLimit) return exact;
  const bare = stripName(name);
  const named = tools.get(bare) ?? tools.get(bare.toLowerCase());
  if (named !== undefined) return named;
  const wanted = normalizeName(bare);
  return (
    findByWords(wanted, tools) ??
    findByWords(wanted.replace(/tool$/, ""), tools) ??
    onlyOne([...tools.values()].filter((tool) => nameOnServer(tool) === wanted))
  );
}

/** Returns the name that the server gives its tool. */
function nameOnServer({ name, server }: Tool): string | undefined {
  const lead = `${server}_`;
  return server !== undefined && name.startsWith(lead) ? normalizeName(name.slice(lead.length)) : undefined;
}

function findByWords(wanted: string, tools: ToolsByName): Tool | undefined {
  if (wanted === "") return undefined;
  const all = [...tools.values()];
  return (
    onlyOne(all.filter((tool) => normalizeName(tool.name) === wanted)) ??
    onlyOne(all.filter(({ otherNames = [] }) => otherNames.some((other) => normalizeName(other) === wanted)))
  );
}

/** Returns the name without blanks, quotes, prefixes and suffixes. */
export function stripName(name: string): string {
  let bare = name.trim().replaceAll(/^["'`]+|["'`]+$/g, "");
  for (let before = ""; before !== bare;) {
    before = bare;
    bare = bare.replace(suffixes, "").replace(prefixes, "").trim();
  }
  return bare;
}

const normalizeName = (name: string): string => normalizeKey(name).replaceAll(/[.:/]/g, "");

function onlyOne(found: readonly Tool[]): Tool | undefined {
  return found.length === 1 ? found[0] : undefined;
}
