import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { adaptBody, adaptMessages } from "./chat-request.ts";
import type { CreateWire } from "./wire.ts";

export { ChatReader as Reader } from "./chat-reader.ts";

/** The provider name for options passed through the SDK. */
const sdkName = "fairlead";

/** OpenAI chat completions, in the dialects of all vendors. */
export const createWire: CreateWire = ({ endpoint, quirks, fetch, isRefused }) => ({
  model: createOpenAICompatible({
    name: sdkName,
    baseURL: endpoint.baseURL,
    ...(endpoint.apiKey !== undefined && { apiKey: endpoint.apiKey }),
    headers: { ...endpoint.headers },
    includeUsage: (endpoint.asksForUsage ?? true) && quirks.asksForUsage,
    fetch,
    transformRequestBody: (body) => {
      const messages: readonly unknown[] = Array.isArray(body.messages) ? body.messages : [];
      const marksCache = quirks.marksCache && !isRefused("cache");
      return { ...adaptBody(body, quirks), messages: adaptMessages(messages, quirks, marksCache) };
    },
  }).chatModel(endpoint.modelId),
  adapt: (params, { quirks, cacheKey, isRefused, options }) => {
    const isKeyed = quirks.takesCacheKey && cacheKey !== undefined && !isRefused("cache-key");
    const sent = { ...(isKeyed && { prompt_cache_key: cacheKey }), ...options };
    // Without options the SDK loads no schema to validate them.
    return Object.keys(sent).length === 0 ? params : { ...params, providerOptions: { [sdkName]: sent } };
  },
});
