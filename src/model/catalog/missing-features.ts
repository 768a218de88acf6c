import type { Api } from "../../config/api.ts";
import type { Model } from "../model.ts";
import type { Provider } from "./usable-providers.ts";

/** A feature that a model runs without, and what the user can do about it. */
export interface MissingFeature {
  readonly feature: "tool calls" | "native tool calls" | "thinking" | "prompt cache" | "known context window";
  readonly advice: string;
}

/** Finds the features that a model runs without. `isAsked` says whether the server is asked for the window. */
export function findMissingFeatures(model: Model, provider: Provider, isAsked: boolean): MissingFeature[] {
  const { abilities, lostOverChat = [], cache, limit, ref } = model;
  const overChat = `Chat completions of ${provider.name} do not offer it. ${adviseApi(model, provider)}`;
  const missing: MissingFeature[] = [];
  if (!abilities.tools)
    missing.push({
      feature: "tool calls",
      advice: lostOverChat.includes("tools")
        ? overChat
        : `It can neither read nor change files. Choose another model for work with files, or set "tool_calls": "text" for it under provider.${ref.provider}.models, so that it writes its calls as text.`,
    });
  if (abilities.tools && model.callsAsText)
    missing.push({
      feature: "native tool calls",
      advice: `Its calls are read from its text. Remove "tool_calls": "text" from provider.${ref.provider} once the server recognizes tool calls.`,
    });
  if (lostOverChat.includes("thinking")) missing.push({ feature: "thinking", advice: overChat });
  if (cache === "none") missing.push({ feature: "prompt cache", advice: overChat });
  if (limit.context === undefined)
    missing.push({
      feature: "known context window",
      advice: `${isAsked ? "The server is asked for it at the first prompt. " : ""}While it is unknown, conversations are not compacted automatically: set limit.context for it under provider.${ref.provider}.models.`,
    });
  return missing;
}

/** Says how to call the model over the API of its vendor. */
function adviseApi({ family, ref }: Model, { id, isCustom, config }: Provider): string {
  if (!isCustom) {
    const isOfModel = config.models?.[ref.model]?.api !== undefined;
    return `Remove "api": "chat" from provider.${id}${isOfModel ? `.models.${ref.model}` : ""}.`;
  }
  const api: Api = family === "claude" ? "messages" : "responses";
  return `Set "api": "${api}" in provider.${id} if the server has that API; fairlead doctor then checks it.`;
}
