import { isRecord } from "../../base/text/record.ts";
import { type KnownModel, knownModelSchema } from "./known-models.ts";

type Json = Record<string, unknown>;

/** Where servers say how many tokens fit, the nearest to the truth first: what is loaded, then what is possible. */
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

/** Words in a model's kind or id that say that it does not converse. */
const otherKinds = /embed|rerank|whisper|tts|speech|transcri|moderation|imagen?(-|$)|dall-e|diffusion|ocr/i;

/** An entry of a server's list of models as far as it can be understood; undefined where it is none to converse with. */
export function toKnownModel(entry: unknown): KnownModel | undefined {
  if (!isRecord(entry)) return undefined;
  const id = idOf(entry);
  if (id === undefined || isOtherKind(entry, id)) return undefined;
  const model = {
    id,
    name: textIn(entry, ["display_name", "name"]) ?? id,
    context: tokensIn(entry, contextFields),
    output: tokensIn(entry, outputFields),
    cost: costOf(entry),
    takes: takesOf(entry),
    reasoning: reasoningOf(entry),
    tools: toolsOf(entry),
  };
  const parsed = knownModelSchema.safeParse(model);
  return parsed.success ? withoutUndefined(parsed.data) : undefined;
}

/** Google writes `models/` before its ids; vLLM, LM Studio and others give `id`, Ollama `name`. */
function idOf(entry: Json): string | undefined {
  return textIn(entry, ["id", "model", "name", "key"])?.replace(/^models\//, "");
}

function isOtherKind(entry: Json, id: string): boolean {
  const kind = textIn(entry, ["type"]);
  if (kind !== undefined && otherKinds.test(kind)) return true;
  if (entry.active === false || at(entry, "capabilities.completion_chat") === false) return true;
  return entry.supports_chat === false || otherKinds.test(id);
}

/** OpenRouter prices a token in a text, Together a million in a number. */
function costOf(entry: Json): KnownModel["cost"] {
  const perToken = (field: string) => perMillion(at(entry, `pricing.${field}`));
  const [prompt, completion] = [perToken("prompt"), perToken("completion")];
  if (prompt !== undefined && completion !== undefined) {
    const [cacheRead, cacheWrite] = [perToken("input_cache_read"), perToken("input_cache_write")];
    return withoutUndefined({ input: prompt, output: completion, cacheRead, cacheWrite });
  }
  const [input, output] = [at(entry, "pricing.input"), at(entry, "pricing.output")];
  return isPrice(input) && isPrice(output) ? { input, output } : undefined;
}

function perMillion(value: unknown): number | undefined {
  const perToken = typeof value === "string" && value.trim() !== "" ? Number(value) : value;
  return isPrice(perToken) ? Math.round(perToken * 1e12) / 1e6 : undefined;
}

function takesOf(entry: Json): KnownModel["takes"] {
  const named = at(entry, "architecture.input_modalities") ?? entry.supported_input_modalities;
  if (Array.isArray(named)) {
    const takes: NonNullable<KnownModel["takes"]> = [];
    if (named.includes("image")) takes.push("image");
    if (named.includes("file")) takes.push("pdf");
    return takes;
  }
  const seen = [entry.supports_image_in, entry.supports_image_input, at(entry, "capabilities.vision")];
  const { capabilities } = entry;
  if (Array.isArray(capabilities)) seen.push(capabilities.includes("vision"));
  if (entry.type === "vlm" || seen.includes(true)) return ["image"];
  return seen.includes(false) ? [] : undefined;
}

function toolsOf(entry: Json): boolean | undefined {
  const { supported_parameters: parameters, capabilities } = entry;
  if (Array.isArray(parameters)) return parameters.includes("tools");
  if (Array.isArray(capabilities))
    return capabilities.includes("tools") || capabilities.includes("tool-calling");
  const told = entry.supports_tools ?? at(entry, "capabilities.function_calling");
  return typeof told === "boolean" ? told : undefined;
}

function reasoningOf(entry: Json): boolean | undefined {
  const { supported_parameters: parameters, capabilities, supports_reasoning: told } = entry;
  if (Array.isArray(parameters) && parameters.includes("reasoning")) return true;
  if (Array.isArray(capabilities) && capabilities.includes("thinking")) return true;
  return told === true ? true : undefined;
}

function tokensIn(entry: Json, fields: readonly string[]): number | undefined {
  return fields
    .map((field) => at(entry, field))
    .find((value): value is number => typeof value === "number" && Number.isInteger(value) && value > 0);
}

function textIn(entry: Json, fields: readonly string[]): string | undefined {
  return fields
    .map((field) => entry[field])
    .find((value): value is string => typeof value === "string" && value.trim() !== "");
}

/** The value at keys with dots between them. */
function at(entry: Json, path: string): unknown {
  return path
    .split(".")
    .reduce<unknown>(
      (value, key) => (isRecord(value) && Object.hasOwn(value, key) ? value[key] : undefined),
      entry,
    );
}

const isPrice = (value: unknown): value is number =>
  typeof value === "number" && Number.isFinite(value) && value >= 0;

function withoutUndefined<T extends object>(value: T): T {
  const kept = { ...value };
  for (const key of Object.keys(kept))
    if (Reflect.get(kept, key) === undefined) Reflect.deleteProperty(kept, key);
  return kept;
}
