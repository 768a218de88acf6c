import { type Api, isApi } from "../../config/api.ts";
import type { ModelConfig } from "../../config/schema.ts";
import type { ModelRef } from "../../message/message.ts";
import { detectFamily } from "./family.ts";
import { defaultEffort, isEffort, namesEffort } from "./efforts.ts";
import type { KnownModel } from "./known-models.ts";
import type { CacheKind, Model } from "../model.ts";
import type { Quirks } from "../quirks.ts";
import data from "../presets.json" with { type: "json" };

/** A built-in provider. */
export interface Preset {
  readonly id: string;
  readonly name: string;
  readonly baseURL: string;
  /** Runs on the user's machine and needs no key. */
  readonly local?: boolean;
  /** Command line that starts its server. */
  readonly startCommand?: string;
  /** Set if the key is used for other purposes too: the provider must then be named in addition. */
  readonly onlyWhereNamed?: boolean;
  /** Environment variables that may hold another base URL. */
  readonly baseURLVariables?: readonly string[];
  /** Environment variables that may hold the key. */
  readonly keyVariables: readonly string[];
  readonly defaultModel?: string;
  /** The API of its models and the page that recommends it; chat if undefined. */
  readonly api?: { readonly default: string; readonly source: string };
  /** How each API caches prompts, and the page that documents it. */
  readonly cache?: Readonly<Partial<Record<Api, string>>> & { readonly source: string };
  /** The page that documents suffixes of model names (`:free`, `:latest`), which are not efforts. */
  readonly suffixes?: string;
  /** Its own API to list models; `GET /models` if undefined. */
  readonly lists?: string;
  /** Where the provider describes its chat completions. */
  readonly docs: string;
}

export const presets: readonly Preset[] = data.presets;

/** Environment variables that contain keys of built-in providers. Child processes must not inherit them. */
export const keyVariables: readonly string[] = [
  ...new Set(presets.flatMap(({ keyVariables }) => keyVariables)),
];

/** Returns the API of a built-in provider at its own address. */
export function presetApi(id: string): Api {
  const api = presets.find((preset) => preset.id === id)?.api?.default;
  return isApi(api) ? api : "chat";
}

/** Returns whether names of the provider's models have suffixes that are not efforts. */
export const takesSuffixes = (id: string): boolean =>
  presets.some((preset) => preset.id === id && preset.suffixes !== undefined);

/** Returns how a built-in provider caches prompts; undefined if its documentation does not say. */
export function presetCache(id: string, api: Api): CacheKind | undefined {
  const kind = presets.find((preset) => preset.id === id)?.cache?.[api];
  return cacheKinds.find((known) => known === kind);
}

const cacheKinds: readonly CacheKind[] = ["automatic", "marks", "none"];

/**
 * Parses `provider/model` with an optional `:variant`. The model may contain `/` and `:` (`openrouter/a/b:free`,
 * `ollama/qwen3:8b`): only an effort of vendors counts as variant. Returns undefined without a `/`.
 */
export function parseModelRef(text: string, splitsEffort = true): ModelRef | undefined {
  const slash = text.indexOf("/");
  if (slash <= 0 || slash === text.length - 1) return undefined;
  const provider = text.slice(0, slash);
  const model = text.slice(slash + 1);
  const colon = model.lastIndexOf(":");
  const variant = colon > 0 ? model.slice(colon + 1) : "";
  return splitsEffort && isEffort(variant)
    ? { provider, model: model.slice(0, colon), variant }
    : { provider, model };
}

/** The form that {@link parseModelRef} reads. */
export function formatModelRef({ provider, model, variant }: ModelRef): string {
  return variant === undefined ? `${provider}/${model}` : `${provider}/${model}:${variant}`;
}

/** The known facts about a model at a provider. */
export interface ModelFacts {
  readonly known: KnownModel | undefined;
  readonly config?: ModelConfig | undefined;
  readonly api: Api;
  /** Limits of the provider's chat completions; undefined for other APIs. */
  readonly chat?: Pick<Quirks, "effortWithTools" | "hasEfforts" | "acceptsTools"> | undefined;
  readonly cache?: CacheKind | undefined;
  /** How the provider exchanges tool calls, unless the model's configuration says otherwise. */
  readonly toolCalls?: ModelConfig["tool_calls"];
  /** Whether the server decides how much the model thinks if the user does not. */
  readonly leavesEffort?: boolean;
}

/** Describes a model from the catalog and the configuration, which takes precedence. */
export function describeModel(
  ref: ModelRef,
  { known, config = {}, api, chat, cache, toolCalls, leavesEffort = false }: ModelFacts = {
    known: undefined,
    api: "chat",
  },
): Model {
  const familyName = (config.family ?? ref.model).toLowerCase();
  const family = detectFamily(familyName, known?.parameters);
  const thinksWithTools = chat === undefined || (chat.hasEfforts && chat.effortWithTools === undefined);
  const variants = listVariants(thinksWithTools ? known?.variants : undefined, config);
  const callsAsText = (config.tool_calls ?? toolCalls) === "text";
  const cost = costFrom(config.cost) ?? known?.cost;
  const leaves = leavesEffort || namesEffort(config.options) || !thinksWithTools;
  const lostOverChat = [
    ...(known?.reasoning === true && !thinksWithTools ? (["thinking"] as const) : []),
    ...(chat?.acceptsTools === false && config.tool_call !== true && !callsAsText
      ? (["tools"] as const)
      : []),
  ];
  const effort = leaves ? undefined : defaultEffort(known, variants);
  return {
    ref,
    api,
    name: config.name ?? known?.name ?? ref.model,
    family,
    toolSet: config.tool_set ?? (family === "small" ? "small" : "all"),
    ...(callsAsText && { callsAsText }),
    editsBy: writesPatches(familyName, family) ? "patch" : "replacement",
    limit: {
      context: config.limit?.context || known?.context,
      input: config.limit?.input || (config.limit?.context ? undefined : known?.input),
      output: config.limit?.output || known?.output,
    },
    ...(cost && { cost }),
    abilities: {
      tools: config.tool_call ?? (callsAsText || (chat?.acceptsTools !== false && (known?.tools ?? true))),
      reasoning: config.reasoning ?? (thinksWithTools && (known?.reasoning ?? variants.length > 0)),
      images: takes("image", known, config) ?? (known === undefined && likelySeesImages(familyName, family)),
      pdf: takes("pdf", known, config) ?? false,
      audio: takes("audio", known, config) ?? false,
      temperature: config.temperature ?? known?.temperature ?? !refusesTemperature.test(ref.model),
    },
    variants,
    ...(effort !== undefined && { defaultEffort: effort }),
    ...(cache !== undefined && { cache }),
    ...(lostOverChat.length > 0 && { lostOverChat }),
  };
}

/** Returns the known and the configured efforts without the disabled ones. */
function listVariants(known: readonly string[] = [], { variants = {} }: ModelConfig): string[] {
  const names = new Set([...known, ...Object.keys(variants)]);
  return [...names].filter((name) => !Object.hasOwn(variants, name) || variants[name]?.["disabled"] !== true);
}

function costFrom(cost: ModelConfig["cost"]): Model["cost"] {
  const { input, output, cache_read: cacheRead, cache_write: cacheWrite } = cost ?? {};
  return input === undefined || output === undefined ? undefined : { input, output, cacheRead, cacheWrite };
}

/** OpenAI's reasoning models reject a temperature. */
const refusesTemperature = /(^|\/)(o[134](-|$)|gpt-[5-9])/;

function takes(
  medium: "image" | "pdf" | "audio",
  known: KnownModel | undefined,
  config: ModelConfig,
): boolean | undefined {
  if (config.modalities?.input) return config.modalities.input.includes(medium);
  if (config.attachment === false) return false;
  if (config.attachment === true && medium === "image") return true;
  return known === undefined ? undefined : (known.takes?.includes(medium) ?? false);
}

/** Returns whether an unknown model accepts images, as all newer models of the large vendors do. */
function likelySeesImages(name: string, family: Model["family"]): boolean {
  return (family !== "open" && family !== "small") || name.includes("gpt-4.1");
}

/** Returns whether the model edits with patches, as OpenAI's models do since GPT-5 and the o-series. */
function writesPatches(name: string, family: Model["family"]): boolean {
  return family === "codex" || (family === "gpt" && !name.includes("gpt-4"));
}
