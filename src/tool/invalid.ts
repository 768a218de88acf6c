import { distance } from "fastest-levenshtein";
import { excerpt } from "../base/text/excerpt.ts";
import { isRecord } from "../base/text/record.ts";
import { unnamedTool } from "../model/answer/call-arguments.ts";
import type { Tool } from "./tool.ts";

/** Maximum number of problems in one message. */
const problemLimit = 4;
/** Characters of a sent value that are quoted. */
const quoteLimit = 40;
/** Maximum number of listed parameters and keys, and maximum characters of listed tools. */
const parameterLimit = 12;
const sentLimit = 4;
const toolsLength = 200;

/** Arguments of programs cannot contain a NUL character. */
export const hasNoNul = (text: string): boolean => !text.includes("\0");

/**
 * Message for the model when a tool does not exist: all names, first those that mean something similar. `bare` is the
 * name without prefix and suffix.
 */
export function describeUnknownTool(name: string, bare: string, available: readonly Tool[]): string {
  const isUnnamed = name.trim() === "" || name === unnamedTool;
  const quoted = JSON.stringify(excerpt(name, quoteLimit));
  const lead = isUnnamed ? "The call names no tool" : `There is no tool ${quoted}`;
  if (available.length === 0) return `${lead}, and no other can be used now. Answer in text.`;
  const ranked = rankByName(bare, available);
  const names = takeNames(ranked.map((tool) => tool.name));
  const rest = ranked.length - names.length;
  const more = rest > 0 ? ` and ${rest} more` : "";
  return `${lead}. Use one of these: ${names.join(", ")}${more}.`;
}

/** Orders tools by how similar their names are to a name. */
export function rankByName(name: string, tools: readonly Tool[]): readonly Tool[] {
  const wanted = name.toLowerCase();
  return tools
    .map((tool) => ({ tool, apart: nameDistance(wanted, tool) }))
    .sort((one, two) => one.apart - two.apart || one.tool.name.localeCompare(two.tool.name))
    .map(({ tool }) => tool);
}

/** Returns the names that fit, at least one. */
function takeNames(names: readonly string[]): readonly string[] {
  let left = toolsLength;
  const end = names.findIndex((name) => (left -= name.length + 2) < 0);
  return end === -1 ? names : names.slice(0, Math.max(1, end));
}

/** Compares by the words of a name and of the tool's other names: 0 for equal, 1 for nothing in common. */
function nameDistance(wanted: string, { name, otherNames = [] }: Tool): number {
  return Math.min(...[name, ...otherNames].map((other) => wordDistance(wanted, other.toLowerCase())));
}

function wordDistance(wanted: string, name: string): number {
  const words = splitWords(wanted);
  const others = splitWords(name);
  const shared = words.filter((word) => others.includes(word)).length;
  const letters = distance(wanted, name) / Math.max(wanted.length, name.length, 1);
  return Math.min(letters, shared === 0 ? 1 : 1 - shared / Math.max(words.length, others.length) / 1.1);
}

const splitWords = (name: string): string[] => name.split(/[^a-z0-9]+/).filter((word) => word !== "");

/** The arguments of an invalid call. */
export interface InvalidInput {
  readonly schema: Readonly<Record<string, unknown>> | undefined;
  /** As the model wrote them. */
  readonly sent: unknown;
  /** As they were checked. */
  readonly used: unknown;
}

/** A schema's report of invalid arguments. */
export interface InputIssues {
  readonly issues: readonly { readonly path: readonly PropertyKey[]; readonly message: string }[];
}

/** Message for the model when arguments are invalid: each field with what was expected and what was sent. */
export function describeInputProblem({ issues }: InputIssues, input?: InvalidInput): string {
  const lines = issues.slice(0, problemLimit).map((issue) => `- ${describeIssue(issue, input)}`);
  const rest = issues.length - lines.length;
  const more = rest > 0 ? [`- and ${rest} more problems`] : [];
  const parameters = input?.schema === undefined ? [] : describeParameters(input.schema);
  return ["Invalid arguments. Call the tool again with these fixed:", ...lines, ...more, ...parameters].join(
    "\n",
  );
}

function describeIssue(
  { path, message }: InputIssues["issues"][number],
  input: InvalidInput | undefined,
): string {
  const field = formatFieldPath(path);
  if (input === undefined || path.length === 0) return `${field}: ${message}`;
  const value = lookUp(input.used, path);
  if (value !== undefined) {
    const shown =
      typeof value === "object" ? "" : ` (you sent ${excerpt(JSON.stringify(value), quoteLimit)})`;
    return `${field}: ${message}${shown}`;
  }
  const holder = lookUp(input.sent, path.slice(0, -1));
  const keys = isRecord(holder) ? Object.keys(holder).filter((key) => !isParameter(key, path, input)) : [];
  const sent = keys.slice(0, sentLimit).map((key) => excerpt(key, quoteLimit));
  return `${field} is missing${sent.length === 0 ? "" : ` (you sent ${sent.join(", ")})`}`;
}

/** Whether a key next to the missing one is a parameter; known for the first level only. */
function isParameter(key: string, path: readonly PropertyKey[], { schema }: InvalidInput): boolean {
  return path.length === 1 && isRecord(schema?.properties) && Object.hasOwn(schema.properties, key);
}

function lookUp(value: unknown, path: readonly PropertyKey[]): unknown {
  let at = value;
  for (const key of path) {
    if (Array.isArray(at) && typeof key === "number") at = at[key];
    else if (isRecord(at) && typeof key === "string" && Object.hasOwn(at, key)) at = at[key];
    else return undefined;
  }
  return at;
}

function describeParameters({ properties, required }: Readonly<Record<string, unknown>>): string[] {
  const names = isRecord(properties) ? Object.keys(properties) : [];
  if (names.length === 0) return [];
  const needed: readonly unknown[] = Array.isArray(required) ? required : [];
  const shown = names
    .toSorted((one, two) => Number(needed.includes(two)) - Number(needed.includes(one)))
    .slice(0, parameterLimit)
    .map((name) => (needed.includes(name) ? `${name} (required)` : name));
  const rest = names.length - shown.length;
  return [`Parameters: ${shown.join(", ")}${rest > 0 ? ` and ${rest} more` : ""}.`];
}

function formatFieldPath(path: readonly PropertyKey[]): string {
  if (path.length === 0) return "the arguments";
  const parts = path.map((key) => (typeof key === "number" ? `[${key}]` : `.${String(key)}`));
  return parts.join("").replace(/^\./, "");
}
