import { isRecord } from "../../base/text/record.ts";
import { parseParameters } from "./family.ts";
import { type KnownModel, knownModelSchema } from "./known-models.ts";

type Json = Record<string, unknown>;

/** Fields with the context window, most reliable first: the loaded size, then the possible one. */
const contextFields = [
  "loaded_context_length",
  "max_model_len",
  "context_length",
  "context_window",
  "max_context_length",
  "max_input_tokens",
  "meta.n_ctx",
  "limits.max_input_tokens",
  "top_provider.context_length",
  "meta.n_ctx_train",
];
const outputFields = [
  "top_provider.max_completion_tokens",
  "max_completion_tokens",
  "limits.max_output_tokens",
  "max_output_length",
];

/** Matches types and ids of models that are not chat models. */
const notChatModel = /embed|rerank|whisper|tts|speech|transcri|moderation|imagen?(-|$)|dall-e|diffusion|ocr/i;

/** Parses an entry of a server's model list. Returns undefined if it is not a chat model. */
export function toKnownModel(entry: unknown): KnownModel | undefined {
  if (!isRecord(entry)) return undefined;
  const id = parseId(entry);
  if (id === undefined || isNotChatModel(entry, id)) return undefined;
  const model = {
    id,
    name: findText(entry, ["display_name", "name"]) ?? id,
    context: findTokens(entry, contextFields),
    output: findTokens(entry, outputFields),
    cost: parseCost(entry),
    takes: parseMedia(entry),
    reasoning: parseReasoning(entry),
    tools: parseTools(entry),
    parameters: findParameters(entry),
  };
  const parsed = knownModelSchema.safeParse(model);
  return parsed.success ? omitUndefined(parsed.data) : undefined;
}

/** Returns the model id. vLLM, LM Studio and others send `id`, Ollama `name`; Google adds the prefix `models/`. */
function parseId(entry: Json): string | undefined {
  return findText(entry, ["id", "model", "name", "key"])?.replace(/^models\//, "");
}

function isNotChatModel(entry: Json, id: string): boolean {
  const kind = findText(entry, ["type"]);
  if (kind !== undefined && notChatModel.test(kind)) return true;
  if (entry.active === false || getPath(entry, "capabilities.completion_chat") === false) return true;
  return entry.supports_chat === false || notChatModel.test(id);
}

/** Parses prices: OpenRouter sends strings per token, Together numbers per million tokens. */
function parseCost(entry: Json): KnownModel["cost"] {
  const perToken = (field: string) => perMillion(getPath(entry, `pricing.${field}`));
  const [prompt, completion] = [perToken("prompt"), perToken("completion")];
  if (prompt !== undefined && completion !== undefined) {
    const [cacheRead, cacheWrite] = [perToken("input_cache_read"), perToken("input_cache_write")];
    return omitUndefined({ input: prompt, output: completion, cacheRead, cacheWrite });
  }
  const [input, output] = [getPath(entry, "pricing.input"), getPath(entry, "pricing.output")];
  return isPrice(input) && isPrice(output) ? { input, output } : undefined;
}

function perMillion(value: unknown): number | undefined {
  const perToken = typeof value === "string" && value.trim() !== "" ? Number(value) : value;
  return isPrice(perToken) ? Math.round(perToken * 1e12) / 1e6 : undefined;
}

function parseMedia(entry: Json): KnownModel["takes"] {
  const named = getPath(entry, "architecture.input_modalities") ?? entry.supported_input_modalities;
  if (Array.isArray(named)) {
    const takes: NonNullable<KnownModel["takes"]> = [];
    if (named.includes("image")) takes.push("image");
    if (named.includes("file")) takes.push("pdf");
    return takes;
  }
  const seen = [entry.supports_image_in, entry.supports_image_input, getPath(entry, "capabilities.vision")];
  const { capabilities } = entry;
  if (Array.isArray(capabilities)) seen.push(capabilities.includes("vision"));
  if (entry.type === "vlm" || seen.includes(true)) return ["image"];
  return seen.includes(false) ? [] : undefined;
}

/** Returns the number of parameters, which Ollama, LM Studio and llama.cpp report. */
function findParameters(entry: Json): number | undefined {
  return ["details.parameter_size", "params_string", "meta.n_params"]
    .map((field) => parseParameters(getPath(entry, field)))
    .find((value) => value !== undefined);
}

function parseTools(entry: Json): boolean | undefined {
  const { supported_parameters: parameters, capabilities } = entry;
  if (Array.isArray(parameters)) return parameters.includes("tools");
  if (Array.isArray(capabilities))
    return capabilities.includes("tools") || capabilities.includes("tool-calling");
  const supported = entry.supports_tools ?? getPath(entry, "capabilities.function_calling");
  return typeof supported === "boolean" ? supported : undefined;
}

function parseReasoning(entry: Json): boolean | undefined {
  const { supported_parameters: parameters, capabilities, supports_reasoning: supported } = entry;
  if (Array.isArray(parameters) && parameters.includes("reasoning")) return true;
  if (Array.isArray(capabilities) && capabilities.includes("thinking")) return true;
  return supported === true ? true : undefined;
}

function findTokens(entry: Json, fields: readonly string[]): number | undefined {
  return fields
    .map((field) => getPath(entry, field))
    .find((value): value is number => typeof value === "number" && Number.isInteger(value) && value > 0);
}

function findText(entry: Json, fields: readonly string[]): string | undefined {
  return fields
    .map((field) => entry[field])
    .find((value): value is string => typeof value === "string" && value.trim() !== "");
}

/** Returns the value at a path with dots. */
function getPath(entry: Json, path: string): unknown {
  return path
    .split(".")
    .reduce<unknown>(
      (value, key) => (isRecord(value) && Object.hasOwn(value, key) ? value[key] : undefined),
      entry,
    );
}

const isPrice = (value: unknown): value is number =>
  typeof value === "number" && Number.isFinite(value) && value >= 0;

function omitUndefined<T extends object>(value: T): T {
  const copy = { ...value };
  for (const key of Object.keys(copy))
    if (Reflect.get(copy, key) === undefined) Reflect.deleteProperty(copy, key);
  return copy;
}
