import type { ModelConfig } from "../config/schema.ts";
import type { ModelRef } from "../message/message.ts";
import type { Model } from "./model.ts";
import data from "./catalog.json" with { type: "json" };

/** A provider that is known without configuration. */
export interface Preset {
  readonly id: string;
  readonly name: string;
  readonly baseURL: string;
  /** Runs on the person's machine and needs no key. */
  readonly local?: boolean;
  /** Environment variables that may hold another base URL. */
  readonly baseURLVariables?: readonly string[];
  /** Environment variables that may hold the key. */
  readonly keyVariables: readonly string[];
  readonly defaultModel?: string;
  readonly models: readonly KnownModel[];
}

/** Limits are tokens; prices US dollars per million tokens, as the providers published them; unknown is left out. */
export interface KnownModel {
  readonly id: string;
  readonly name: string;
  readonly context?: number;
  readonly input?: number;
  readonly output?: number;
  readonly cost?: { input: number; output: number; cacheRead?: number; cacheWrite?: number };
  /** Media it takes beside text: image, pdf, audio. */
  readonly takes?: readonly string[];
  readonly reasoning?: boolean;
  /** False where the provider refuses one. */
  readonly temperature?: boolean;
  /** Reasoning efforts. */
  readonly variants?: readonly string[];
}

export const presets: readonly Preset[] = data.presets;

/** All environment variables in which keys of known providers stand; child processes must not inherit them. */
export const keyVariables: readonly string[] = [
  ...new Set(presets.flatMap(({ keyVariables }) => keyVariables)),
];

/** Names of reasoning efforts that are written behind a model: `openai/gpt-5:high`. */
const efforts = new Set(["none", "minimal", "low", "medium", "high", "xhigh", "max"]);

/**
 * Reads `provider/model` with an optional `:variant`. The model may itself hold `/` and `:`
 * (`openrouter/a/b:free`, `ollama/qwen3:8b`): only a known effort counts as variant. Undefined without a `/`.
 */
export function parseModelRef(text: string): ModelRef | undefined {
  const slash = text.indexOf("/");
  if (slash <= 0 || slash === text.length - 1) return undefined;
  const provider = text.slice(0, slash);
  const model = text.slice(slash + 1);
  const colon = model.lastIndexOf(":");
  const variant = colon > 0 ? model.slice(colon + 1) : "";
  return efforts.has(variant) ? { provider, model: model.slice(0, colon), variant } : { provider, model };
}

/** The form that {@link parseModelRef} reads. */
export function formatModelRef({ provider, model, variant }: ModelRef): string {
  return variant === undefined ? `${provider}/${model}` : `${provider}/${model}:${variant}`;
}

/** A model from what the catalog knows of it and what the configuration says, which counts more. */
export function describeModel(ref: ModelRef, known: KnownModel | undefined, config: ModelConfig = {}): Model {
  const family = familyOf(config.family ?? ref.model);
  const variants = config.variants ? Object.keys(config.variants) : (known?.variants ?? []);
  const { input, output } = { input: config.cost?.input, output: config.cost?.output };
  const cost =
    input === undefined || output === undefined
      ? known?.cost
      : { input, output, cacheRead: config.cost?.cache_read, cacheWrite: config.cost?.cache_write };
  return {
    ref,
    name: config.name ?? known?.name ?? ref.model,
    family,
    limit: {
      context: config.limit?.context || known?.context,
      input: config.limit?.input || (config.limit?.context ? undefined : known?.input),
      output: config.limit?.output || known?.output,
    },
    ...(cost && { cost }),
    abilities: {
      tools: config.tool_call ?? true,
      reasoning: config.reasoning ?? known?.reasoning ?? variants.length > 0,
      images: takes("image", known, config) ?? (known === undefined && family !== "other"),
      pdf: takes("pdf", known, config) ?? false,
      audio: takes("audio", known, config) ?? false,
      temperature: config.temperature ?? known?.temperature ?? !refusesTemperature.test(ref.model),
    },
    variants,
  };
}

/** OpenAI's reasoning models take no temperature but their own. */
const refusesTemperature = /(^|\/)(o[134](-|$)|gpt-5)/;

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

function familyOf(name: string): Model["family"] {
  const lower = name.toLowerCase();
  if (lower.includes("claude")) return "claude";
  if (lower.includes("codex")) return "codex";
  if (lower.includes("gemini")) return "gemini";
  if (/(^|\/)(gpt|o[134](-|$)|chatgpt)/.test(lower)) return "gpt";
  return "other";
}
