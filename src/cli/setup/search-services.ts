import type { SearchEndpointConfig } from "../../config/schema.ts";

/** A web search that answers with JSON. */
export interface SearchService {
  readonly id: string;
  readonly name: string;
  /** Variable that usually holds its key; undefined if it needs none. */
  readonly keyVariable: string | undefined;
  /** Creates the configuration. `base` is the address of the user's own server. */
  createEndpoint(access: { readonly key: string; readonly base: string }): SearchEndpointConfig;
}

/** Results requested from services that take a number. */
const resultCount = 10;
/** Characters of a page's text. */
const textLength = 1_500;

export const searchServices: readonly SearchService[] = [
  {
    // https://api-dashboard.search.brave.com/app/documentation/web-search
    id: "brave",
    name: "Brave Search",
    keyVariable: "BRAVE_API_KEY",
    createEndpoint: ({ key }) => ({
      url: "https://api.search.brave.com/res/v1/web/search?q={query}",
      headers: { "x-subscription-token": key },
      results: "web.results",
    }),
  },
  {
    // https://docs.tavily.com/documentation/api-reference/endpoint/search
    id: "tavily",
    name: "Tavily",
    keyVariable: "TAVILY_API_KEY",
    createEndpoint: ({ key }) => ({
      url: "https://api.tavily.com/search",
      headers: { authorization: `Bearer ${key}` },
      body: { query: "{query}", max_results: resultCount },
      results: "results",
    }),
  },
  {
    // https://docs.exa.ai/reference/search
    id: "exa",
    name: "Exa",
    keyVariable: "EXA_API_KEY",
    createEndpoint: ({ key }) => ({
      url: "https://api.exa.ai/search",
      headers: { "x-api-key": key },
      body: {
        query: "{query}",
        numResults: resultCount,
        contents: { text: { maxCharacters: textLength } },
      },
      results: "results",
    }),
  },
  {
    // https://docs.searxng.org/dev/search_api.html
    id: "searxng",
    name: "SearXNG",
    keyVariable: undefined,
    createEndpoint: ({ base }) => ({ url: `${base}/search?q={query}&format=json`, results: "results" }),
  },
];
