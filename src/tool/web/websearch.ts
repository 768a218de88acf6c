import { titleOfObject } from "../../base/text/call-titles.ts";
import { z } from "zod";
import { excerpt } from "../../base/text/excerpt.ts";
import codesearchDescription from "../../../prompts/tools/codesearch.md";
import websearchDescription from "../../../prompts/tools/websearch.md";
import type { Config, SearchEndpointConfig } from "../../config/schema.ts";
import { defineTool, ToolFailure } from "../tool.ts";
import type { RunContext, Tool, ToolResult } from "../tool.ts";

const usualResults = 8;
const resultLimit = 20;
const queryLimit = 1_000;
/** Characters of one result's text. */
const textLimit = 2_000;
/** Characters of an error's body. */
const errorExcerpt = 500;
const timeoutMs = 30_000;

const inputSchema = z.object({
  query: z.string().min(1).max(queryLimit).describe("What to search for"),
  numResults: z
    .number()
    .int()
    .positive()
    .max(resultLimit)
    .optional()
    .describe(`How many results to return: ${usualResults} when left out, at most ${resultLimit}`),
});
type Input = z.infer<typeof inputSchema>;

/** Creates the search tools that have a configured endpoint. */
export function searchTools(search: Config["search"]): Tool[] {
  return [
    ...(search?.web ? [searchTool("websearch", websearchDescription, search.web)] : []),
    ...(search?.code ? [searchTool("codesearch", codesearchDescription, search.code)] : []),
  ];
}

const searchNames: Readonly<Record<string, readonly string[]>> = {
  websearch: ["web_search", "google_web_search", "search_web", "google_search"],
  codesearch: ["code_search", "search_code"],
};

function searchTool(name: string, description: string, endpoint: SearchEndpointConfig): Tool {
  return defineTool<Input>({
    name,
    otherNames: searchNames[name] ?? [],
    aliases: {
      query: ["q", "search", "search_term", "search_query"],
      numResults: ["num", "count", "limit", "max_results"],
    },
    description,
    input: inputSchema,
    kind: "fetch",
    concurrency: "shared",
    prepare: async ({ query, numResults = usualResults }) => ({
      title: titleOfObject(name === "codesearch" ? "Search code for" : "Search the web for", `"${query}"`),
      locations: [],
      permissions: [{ permission: name, subjects: [{ text: query }], always: ["*"] }],
      run: (run) => runSearch(endpoint, query, numResults, run),
    }),
  });
}

async function runSearch(
  endpoint: SearchEndpointConfig,
  query: string,
  count: number,
  { signal }: RunContext,
): Promise<ToolResult> {
  return { status: "completed", output: await searchWeb(endpoint, query, count, signal) };
}

/** Asks a search service. Returns the results as text for the model. */
export async function searchWeb(
  endpoint: SearchEndpointConfig,
  query: string,
  count: number,
  signal: AbortSignal,
): Promise<string> {
  const timeout = AbortSignal.timeout(timeoutMs);
  try {
    const answer = await askEndpoint(endpoint, query, AbortSignal.any([signal, timeout]));
    return describeResults(extractResults(endpoint, answer).slice(0, count));
  } catch (error) {
    if (signal.aborted || !timeout.aborted) throw error;
    throw new ToolFailure(`The search did not answer within ${timeoutMs / 1000} seconds. Try again.`, {
      cause: error,
    });
  }
}

async function askEndpoint(
  { url: template, headers = {}, body }: SearchEndpointConfig,
  query: string,
  signal: AbortSignal,
): Promise<unknown> {
  const { resolveAddresses, sendRequest, systemLookup } = await import("./web-request.ts");
  const url = createUrl(template, query);
  const sent = body === undefined ? undefined : JSON.stringify(fillTemplate(body, query));
  const response = await sendRequest({
    url,
    method: sent === undefined ? "GET" : "POST",
    headers: {
      accept: "application/json",
      ...(sent !== undefined && {
        "content-type": "application/json",
        "content-length": String(Buffer.byteLength(sent)),
      }),
      ...headers,
    },
    ...(sent !== undefined && { body: sent }),
    addresses: await resolveAddresses(url, systemLookup),
    signal,
  });
  // Redirects are not followed: the headers may hold a key, and it is for this host only.
  const text = (await response.read()).toString("utf8");
  if (response.status >= 200 && response.status <= 299) return parseJson(text);
  throw new ToolFailure(
    `The search answered with status ${response.status}. Tell the user if it stays so. ${excerpt(text, errorExcerpt)}`.trim(),
  );
}

function createUrl(template: string, query: string): URL {
  const text = template.replaceAll("{query}", () => encodeURIComponent(query));
  if (URL.canParse(text) && /^https?:$/.test(new URL(text).protocol)) return new URL(text);
  throw new ToolFailure(
    `The configured address of the search is none: ${template}. Tell the user to correct it.`,
  );
}

/** Replaces `{query}` in every text of the body. */
function fillTemplate(template: unknown, query: string): unknown {
  if (typeof template === "string") return template.replaceAll("{query}", () => query);
  if (Array.isArray(template)) return template.map((item: unknown) => fillTemplate(item, query));
  if (typeof template !== "object" || template === null) return template;
  return Object.fromEntries(
    Object.entries(template).map(([key, value]) => [key, fillTemplate(value, query)]),
  );
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new ToolFailure("The search response is not JSON. Tell the user.", {
      cause: error,
    });
  }
}

interface Result {
  readonly title: string;
  readonly url: string;
  readonly text: string;
}

const usualKeys = {
  results: ["results", "items", "data", "hits", "web.results"],
  title: ["title", "name"],
  url: ["url", "link", "html_url"],
  text: ["text", "snippet", "description", "content"],
};

function extractResults({ results, fields }: SearchEndpointConfig, answer: unknown): Result[] {
  const paths = results === undefined ? usualKeys.results : [results];
  const lists = [...paths.map((path) => getAtPath(answer, path)), answer];
  const list: readonly unknown[] | undefined = lists.find((value) => Array.isArray(value));
  if (list === undefined)
    throw new ToolFailure(
      `The search's answer has no list of results at ${paths.join(", ")}. Tell the user to set "results" in the configuration.`,
    );
  const textAt = (item: unknown, own: string | undefined, usual: readonly string[]) =>
    (own === undefined ? usual : [own])
      .map((path) => toText(getAtPath(item, path)))
      .find((text) => text !== "") ?? "";
  return list.map((item) => ({
    title: textAt(item, fields?.title, usualKeys.title),
    url: textAt(item, fields?.url, usualKeys.url),
    text: textAt(item, fields?.text, usualKeys.text),
  }));
}

/** Returns the value at a path of keys separated by dots. */
function getAtPath(value: unknown, path: string): unknown {
  return path.split(".").reduce<unknown>((inner, key) => {
    if (typeof inner !== "object" || inner === null || !Object.hasOwn(inner, key)) return undefined;
    return Reflect.get(inner, key);
  }, value);
}

/** Returns a text, or joins the texts of a list. */
function toText(value: unknown): string {
  if (Array.isArray(value))
    return value
      .filter((item) => typeof item === "string")
      .join("\n")
      .trim();
  return typeof value === "string" ? value.trim() : "";
}

function describeResults(results: readonly Result[]): string {
  if (results.length === 0) return "Nothing was found. Try other words.";
  return results.map((result, index) => describeResult(result, index + 1)).join("\n\n");
}

function describeResult({ title, url, text }: Result, number: number): string {
  const shown = text.length <= textLimit ? text : `${text.slice(0, textLimit)}… (cut)`;
  return [`${number}. ${title || "(no title)"}`, url, shown].filter((line) => line !== "").join("\n");
}
