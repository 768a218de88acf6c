import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { experimental_streamLanguageModelCall as streamLanguageModelCall, jsonSchema } from "ai";

/** What is used of the SDK, a tenth of it, in a part of its own that loads with the first call. */
export const sdk = { createOpenAICompatible, jsonSchema, streamLanguageModelCall };
