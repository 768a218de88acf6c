import type { Tool } from "../../tool/tool.ts";
import { normalizeKey } from "./keys.ts";

/** Tools by name. */
export type ToolsByName = ReadonlyMap<string, Tool>;

/** Namespaces before a name: of GPT, of Gemini, of MCP. */
const prefixes = /^(?:functions?|tools?|default_api|mcp|multi_tool_use|assistant)(?:[.:/]+|__)|^functions_/i;
/** Tokens of a chat template, a call's number, an empty call, after a name. */
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
