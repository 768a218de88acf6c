/** The APIs that models are called with: OpenAI chat completions, OpenAI Responses and Anthropic Messages. */
export const apis = ["chat", "responses", "messages"] as const;
export type Api = (typeof apis)[number];

export const isApi = (text: string | undefined): text is Api => apis.some((api) => api === text);
