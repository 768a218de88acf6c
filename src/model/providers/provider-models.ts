import { type Api, isApi } from "../../config/api.ts";
import type { ModelConfig } from "../../config/schema.ts";
import type { ModelRef } from "../../message/message.ts";
import {
  describeModel,
  formatModelRef,
  parseModelRef,
  presetApi,
  presetCache,
  takesSuffixes,
} from "../catalog/catalog.ts";
import { convertEffort, namesEffort, omitEffort } from "../catalog/efforts.ts";
import type { Catalog, KnownModel } from "../catalog/known-models.ts";
import type { ModelList } from "../catalog/model-lists.ts";
import type { Provider } from "../catalog/usable-providers.ts";
import { findVendorModel } from "../catalog/vendor-models.ts";
import type { Endpoint } from "../endpoint.ts";
import type { Model } from "../model.ts";
import { quirksOf } from "../quirks.ts";

export interface ProviderModelsDeps {
  readonly providers: ReadonlyMap<string, Provider>;
  readonly catalog: Catalog;
  /** Model lists of servers, by provider. */
  readonly lists?: ReadonlyMap<string, ModelList> | undefined;
}

/** A model's name as the user wrote it. */
export type ParsedName =
  | { outcome: "parsed"; ref: ModelRef }
  | { outcome: "unknown-effort"; model: Model; effort: string }
  | { outcome: "invalid" };

/** The models of the usable providers: data from the catalog, the servers' own lists and the configuration. */
export class ProviderModels {
  readonly #deps: ProviderModelsDeps;
  readonly #merged = new Map<string, ReadonlyMap<string, KnownModel>>();
  #listed: readonly Model[] | undefined;
  /** A prompt asks for its model several times. */
  readonly #described = new Map<string, Model>();

  constructor(deps: ProviderModelsDeps) {
    this.#deps = deps;
  }

  list(): readonly Model[] {
    return (this.#listed ??= [...this.#deps.providers.values()].flatMap((provider) =>
      this.#listOf(provider),
    ));
  }

  /** Accepts any id: providers release models more often than this program is updated. */
  find(ref: ModelRef): Model | undefined {
    const provider = this.#deps.providers.get(ref.provider);
    return provider && this.#describe(provider, ref);
  }

  /**
   * Parses `provider/model[:effort]`. The suffix is an effort if no model has that id and the model has that
   * effort. An effort that a known model lacks is an error. Any other word is an error too if the model has
   * efforts and its name can have no other suffixes.
   */
  parse(text: string): ParsedName {
    const whole = parseModelRef(text, false);
    if (whole === undefined) return { outcome: "invalid" };
    const provider = this.#deps.providers.get(whole.provider);
    const colon = whole.model.lastIndexOf(":");
    if (provider === undefined || colon <= 0 || this.#isKnown(provider, whole.model))
      return { outcome: "parsed", ref: provider === undefined ? (parseModelRef(text) ?? whole) : whole };
    const base = { ...whole, model: whole.model.slice(0, colon) };
    const variant = whole.model.slice(colon + 1);
    const model = this.#describe(provider, base);
    if (model.variants.includes(variant)) return { outcome: "parsed", ref: { ...base, variant } };
    const ref = parseModelRef(text) ?? whole;
    const isRefused =
      ref.variant === undefined
        ? model.variants.length > 0 && /^[a-z]+$/i.test(variant) && !this.#hasSuffixes(provider, base.model)
        : this.#isKnown(provider, base.model) && !acceptsAny(model);
    return isRefused ? { outcome: "unknown-effort", model, effort: variant } : { outcome: "parsed", ref };
  }

  /** Returns the address, key and options for calls of the model. The options include those of the agent. */
  endpointOf(
    provider: Provider,
    { ref, defaultEffort }: Model,
    agentOptions: Readonly<Record<string, unknown>> = {},
  ): Omit<Endpoint, "stallMs"> {
    const { options = {} } = provider.config;
    const model = modelConfig(provider, ref);
    const api = apiOf(provider, model, this.#knownOf(provider, ref));
    const ofModel = model?.options ?? {};
    const given = { ...(namesEffort(agentOptions) ? omitEffort(ofModel) : ofModel), ...agentOptions };
    const chosen = ref.variant ?? (namesEffort(given) ? undefined : defaultEffort);
    return {
      provider: provider.id,
      api,
      baseURL: provider.baseURL,
      ...(provider.apiKey !== undefined && { apiKey: provider.apiKey }),
      headers: { ...options.headers, ...model?.headers },
      modelId: model?.id ?? ref.model,
      options:
        chosen === undefined
          ? convertEffort(given, api)
          : { ...omitEffort(given), ...variantOptions(chosen, model) },
      ...(options.includeUsage !== undefined && { asksForUsage: options.includeUsage }),
    };
  }

  #listOf(provider: Provider): Model[] {
    const { config } = provider;
    const ids = new Set([...this.#own(provider).keys(), ...Object.keys(config.models ?? {})]);
    for (const name of provider.extraModels) ids.add(this.#extraModel(provider, name));
    return [...ids]
      .filter((id) => !config.whitelist || config.whitelist.includes(id))
      .filter((id) => !config.blacklist?.includes(id))
      .map((model) => this.#describe(provider, { provider: provider.id, model }));
  }

  /** Returns the id of a model that an environment variable names, without its effort. */
  #extraModel(provider: Provider, model: string): string {
    const parsed = this.parse(formatModelRef({ provider: provider.id, model }));
    if (parsed.outcome === "parsed") return parsed.ref.model;
    return parsed.outcome === "unknown-effort" ? parsed.model.ref.model : model;
  }

  #isKnown(provider: Provider, id: string): boolean {
    return (
      this.#knownOf(provider, { provider: provider.id, model: id }) !== undefined ||
      isConfigured(provider, id)
    );
  }

  /** Returns whether a suffix of the model's name may mean something else than an effort. */
  #hasSuffixes(provider: Provider, id: string): boolean {
    const ids = [...this.#own(provider).keys(), ...Object.keys(provider.config.models ?? {})];
    const hasOther = ids.some((other) => other.startsWith(`${id}:`));
    return hasOther || takesSuffixes(provider.id) || !ids.includes(id);
  }

  #describe(provider: Provider, ref: ModelRef): Model {
    const key = JSON.stringify([ref.provider, ref.model, ref.variant]);
    const described = this.#described.get(key) ?? this.#createModel(provider, ref);
    this.#described.set(key, described);
    return described;
  }

  #createModel(provider: Provider, ref: ModelRef): Model {
    const config = modelConfig(provider, ref);
    const known = this.#knownOf(provider, ref);
    const api = apiOf(provider, config, known);
    const chat =
      api === "chat"
        ? quirksOf(provider.id, URL.parse(provider.baseURL)?.hostname ?? "", config?.id ?? ref.model)
        : undefined;
    return describeModel(ref, {
      known,
      config,
      api,
      chat,
      toolCalls: provider.config.tool_calls,
      cache: chat?.marksCache === true ? "marks" : cacheOf(provider, api),
      leavesEffort: provider.isCustom && api === "chat",
    });
  }

  #knownOf(provider: Provider, ref: ModelRef): KnownModel | undefined {
    const id = modelConfig(provider, ref)?.id ?? ref.model;
    const own = this.#own(provider).get(ref.model) ?? this.#own(provider).get(id);
    if (!provider.isCustom) return own;
    const vendor = findVendorModel(this.#deps.catalog, id);
    return vendor === undefined ? own : { ...vendor, ...own, name: vendor.name };
  }

  /** Returns the models that the catalog and the server list. The server overrides the catalog. */
  #own(provider: Provider): ReadonlyMap<string, KnownModel> {
    const merged = this.#merged.get(provider.id) ?? this.#merge(provider);
    this.#merged.set(provider.id, merged);
    return merged;
  }

  #merge({ id, servesCatalogue }: Provider): ReadonlyMap<string, KnownModel> {
    const models = new Map<string, KnownModel>();
    if (servesCatalogue) for (const model of this.#deps.catalog.modelsOf(id)) models.set(model.id, model);
    for (const model of this.#deps.lists?.get(id)?.models ?? []) {
      const before = models.get(model.id);
      models.set(model.id, before === undefined ? model : { ...before, ...model, name: before.name });
    }
    return models;
  }
}

/** Returns whether a reasoning model has unknown efforts. */
const acceptsAny = ({ variants, abilities }: Model): boolean => variants.length === 0 && abilities.reasoning;

const isConfigured = ({ config }: Provider, id: string): boolean =>
  config.models !== undefined && Object.hasOwn(config.models, id);

export const modelConfig = (provider: Provider, { model }: ModelRef): ModelConfig | undefined =>
  isConfigured(provider, model) ? provider.config.models?.[model] : undefined;

/** Returns the API of a provider's models that do not have another one. */
export const providerApi = (provider: Provider): Api => apiOf(provider, undefined, undefined);

/** The APIs of the packages that OpenCode's files name. */
const packageApis: ReadonlyMap<string, Api> = new Map([
  ["@ai-sdk/openai-compatible", "chat"],
  ["@ai-sdk/openai", "responses"],
  ["@ai-sdk/anthropic", "messages"],
]);

/** Precedence: the model's configuration, the provider's, the catalog. Other addresses speak chat unless configured. */
function apiOf(
  { id, isCustom, config }: Provider,
  model: ModelConfig | undefined,
  known: KnownModel | undefined,
): Api {
  if (model?.api !== undefined) return model.api;
  if (isApi(config.api)) return config.api;
  const named = config.npm === undefined ? undefined : packageApis.get(config.npm);
  return named ?? (isCustom ? "chat" : (known?.api ?? presetApi(id)));
}

const cacheOf = ({ id, isCustom }: Provider, api: Api) => (isCustom ? undefined : presetCache(id, api));

function variantOptions(
  variant: string | undefined,
  model: ModelConfig | undefined,
): Record<string, unknown> {
  if (variant === undefined) return {};
  if (!model?.variants || !Object.hasOwn(model.variants, variant)) return { reasoningEffort: variant };
  const { disabled: _, ...options } = model.variants[variant] ?? {};
  return options;
}
