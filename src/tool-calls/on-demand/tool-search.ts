import { z } from "zod";
import description from "../../../prompts/tools/tool_search.md";
import { excerpt } from "../../base/text/excerpt.ts";
import { isRecord } from "../../base/text/record.ts";
import { rankByName } from "../../tool/invalid.ts";
import { defineTool, type Tool } from "../../tool/tool.ts";
import { findTool } from "../repair/repair-call.ts";
import { requireSchema } from "../tool-schema.ts";

export const TOOL_SEARCH = "tool_search";

/** Maximum number of tools that a search returns, and that are selected by name. */
const FOUND_LIMIT = 5;
const SELECTED_LIMIT = 10;
/** Maximum number of further tools that are named. */
const NAMED_LIMIT = 10;
/** Characters of all tools in a result. The first one is always returned. */
const RESULT_LENGTH = 24_000;
/** Characters of a query in a title or an answer. */
const QUERY_LENGTH = 80;

/** Points of a match in a tool's name, in a parameter's name, and in a description. */
const POINTS = { name: 4, parameter: 2, description: 1 } as const;
/** Shortest word that may be the beginning of another one. */
const SHORTEST_STEM = 3;

const selectPrefix = /^select:/i;

const inputSchema = z.object({
  query: z.string().describe('Words for the work, or "select:name,name" for exact names.'),
});

/** Finds tools that are loaded on demand. */
export function toolSearch(tools: readonly Tool[]): Tool {
  return defineTool({
    name: TOOL_SEARCH,
    aliases: {
      query: ["queries", "keywords", "search", "q", "name", "names", "tool", "tool_name", "select"],
    },
    description,
    input: inputSchema,
    kind: "search",
    concurrency: "shared",
    async prepare({ query }) {
      return {
        title: `Find tools: ${excerpt(query, QUERY_LENGTH)}`,
        locations: [],
        // Reads only descriptions of tools that the agent may call.
        permissions: [],
        run: async () => ({ status: "completed", output: search(query, tools) }),
      };
    },
  });
}

function search(query: string, tools: readonly Tool[]): string {
  const selected = selectByName(query, tools);
  if (selected === undefined) return describeFound(query, tools);
  const { found, unknown } = selected;
  const problems = unknown.map((name) => describeUnknown(name, tools));
  return [formatTools(found.slice(0, SELECTED_LIMIT), found.slice(SELECTED_LIMIT)), ...problems]
    .filter(Boolean)
    .join("\n\n");
}

/** Returns the tools that the query names; undefined if it does not list names. */
function selectByName(query: string, tools: readonly Tool[]) {
  const byName = new Map(tools.map((tool) => [tool.name, tool]));
  const isSelection = selectPrefix.test(query.trim());
  const names = query
    .trim()
    .replace(selectPrefix, "")
    .split(/[\s,]+/)
    .filter(Boolean);
  const isList = isSelection || (names.length > 0 && names.every((name) => byName.has(name)));
  if (!isList) return undefined;
  const matches = names.map((name) => ({ name, tool: findTool(name, byName) }));
  const found = [...new Set(matches.flatMap(({ tool }) => tool ?? []))];
  return { found, unknown: matches.filter(({ tool }) => tool === undefined).map(({ name }) => name) };
}

function describeFound(query: string, tools: readonly Tool[]): string {
  const found = rank(query, tools);
  if (found.length === 0)
    return `No tool matches ${quote(query)}. Use other words for the work, or "select:" with a name that the system prompt lists.`;
  return formatTools(found.slice(0, FOUND_LIMIT), found.slice(FOUND_LIMIT));
}

function describeUnknown(name: string, tools: readonly Tool[]): string {
  const near = rankByName(name, tools).slice(0, FOUND_LIMIT);
  return `There is no tool ${quote(name)}. Nearest names: ${near.map((tool) => tool.name).join(", ")}.`;
}

const quote = (text: string): string => JSON.stringify(excerpt(text, QUERY_LENGTH));

/** Formats the tools that fit, and names the others. */
function formatTools(tools: readonly Tool[], others: readonly Tool[]): string {
  let left = RESULT_LENGTH;
  const texts = tools.map(formatTool);
  const end = texts.findIndex((text, index) => (left -= text.length) < 0 && index > 0);
  const count = end === -1 ? texts.length : end;
  const rest = [...tools.slice(count), ...others];
  const named = rest.slice(0, NAMED_LIMIT).map(({ name }) => name);
  const more = rest.length > named.length ? ` and ${rest.length - named.length} more` : "";
  const further = rest.length === 0 ? [] : [`Further matches: ${named.join(", ")}${more}.`];
  return [...texts.slice(0, count), ...further].join("\n\n");
}

function formatTool(tool: Tool): string {
  const { name, server } = tool;
  return [
    `<tool name="${name}" server="${server}">`,
    tool.description.trim(),
    `Parameters: ${JSON.stringify(requireSchema(tool))}`,
    "</tool>",
  ].join("\n");
}

/** Returns the tools that match words of the query, the best first and equal ones by name. */
function rank(query: string, tools: readonly Tool[]): readonly Tool[] {
  const words = [...new Set(splitWords(query))];
  return tools
    .map((tool) => ({ tool, points: sumPoints(words, tool) }))
    .filter(({ points }) => points > 0)
    .toSorted((one, other) => other.points - one.points || (one.tool.name < other.tool.name ? -1 : 1))
    .map(({ tool }) => tool);
}

function sumPoints(words: readonly string[], tool: Tool): number {
  const { properties } = requireSchema(tool);
  const parameters = isRecord(properties) ? Object.keys(properties) : [];
  const fields = [
    { points: POINTS.name, found: splitWords(tool.name) },
    { points: POINTS.parameter, found: parameters.flatMap(splitWords) },
    { points: POINTS.description, found: splitWords(tool.description) },
  ];
  return words.reduce((sum, word) => {
    const best = fields.find(({ found }) => found.some((one) => isSameWord(word, one)));
    return sum + (best?.points ?? 0);
  }, 0);
}

/** Compares words, where "issues" equals "issue" and "repo" equals "repository". */
function isSameWord(one: string, other: string): boolean {
  const [short, long] = one.length < other.length ? [one, other] : [other, one];
  return short === long || (short.length >= SHORTEST_STEM && long.startsWith(short));
}

const splitWords = (text: string): string[] =>
  text
    .replaceAll(/(\p{Ll})(\p{Lu})/gu, "$1 $2")
    .toLowerCase()
    .split(/[^\p{L}\p{N}]+/u)
    .filter((word) => word !== "");
