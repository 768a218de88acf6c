import type { Log } from "../base/log.ts";
import type { Config, ModelConfig, ProviderConfig } from "../config/schema.ts";
import type { Env } from "../config/paths.ts";
import type { AgentError, ModelRef } from "../message/message.ts";
import {
  describeModel,
  formatModelRef,
  parseModelRef,
  presets,
  type KnownModel,
  type Preset,
} from "./catalog.ts";
import { Clients, loadSdk, type Endpoint } from "./client.ts";
import type { Credentials } from "./credentials.ts";
import type { Model, Models } from "./model.ts";
import { defaultStallMs, streamStep } from "./stream.ts";
import { costOf } from "./usage.ts";

export interface OpenModelsOptions {
  readonly config: Config;
  readonly env: Env;
  readonly credentials: Credentials;
  readonly log: Log;
  readonly fetch?: typeof globalThis.fetch;
}

/** A provider that can be used now. Its key is not shown. */
export interface ProviderSummary {
  readonly id: string;
  readonly name: string;
  readonly baseURL: string;
  readonly local: boolean;
  /** Where its key comes from; undefined where it has none. */
  readonly keyFrom: string | undefined;
}

export type DefaultModel = { outcome: "found"; model: Model } | { outcome: "none"; error: AgentError };

export interface OpenModels extends Models {
  providers(): readonly ProviderSummary[];
  /**
   * The model to start with: `FAIRLEAD_MODEL`, the configured one, the last used, `OPENAI_MODEL`, or the only
   * provider's default. Never a pick among several providers, never another one than was named.
   */
  defaultModel(wishes?: { configured?: string; lastUsed?: ModelRef }): DefaultModel;
  /** The model that a text names (`provider/model[:variant]`), if its provider can be used. */
  findByName(text: string): Model | undefined;
  /** Loads the SDK ahead of the first call. */
  warmUp(): Promise<void>;
}

/** The models of all providers that are configured, have a key, or need none. Makes no request. */
export function openModels({
  config,
  env,
  credentials,
  log,
  fetch = globalThis.fetch,
}: OpenModelsOptions): OpenModels {
  const providers = usableProviders(config, env, credentials);
  const listed = [...providers.values()].flatMap(listModels);
  const clients = new Clients(fetch);
  const stallMs = config.retry?.stall_ms ?? defaultStallMs;

  const find = (ref: ModelRef): Model | undefined => {
    const provider = providers.get(ref.provider);
    return provider && modelOf(provider, ref);
  };
  const findByName = (text: string): Model | undefined => {
    const ref = parseModelRef(text);
    return ref && find(ref);
  };

  return {
    list: () => listed,
    find,
    findByName,
    costOf,
    providers: () => [...providers.values()].map(summaryOf),
    defaultModel: (wishes = {}) => chooseDefault({ wishes, env, config, providers, find }),
    async warmUp() {
      await loadSdk();
    },
    stream(request) {
      const provider = providers.get(request.model.ref.provider);
      if (provider === undefined) return failedAtOnce(unusable(formatModelRef(request.model.ref), config));
      return streamStep(request, endpointOf(provider, request.model.ref, stallMs), { clients, log });
    },
  };
}

interface Provider {
  readonly id: string;
  readonly name: string;
  readonly baseURL: string;
  readonly local: boolean;
  /** The catalog's models do not count at another address than the catalog's. */
  readonly known: readonly KnownModel[];
  readonly defaultModel: string | undefined;
  readonly apiKey: string | undefined;
  readonly keyFrom: string | undefined;
  readonly config: ProviderConfig;
  /** Named in the environment and nowhere else. */
  readonly extraModels: readonly string[];
}

function usableProviders(config: Config, env: Env, credentials: Credentials): Map<string, Provider> {
  const ids = [...new Set([...presets.map(({ id }) => id), ...Object.keys(config.provider ?? {})])];
  const usable = ids
    .filter((id) => isEnabled(id, config))
    .map((id) => toProvider(id, config.provider?.[id], env, credentials))
    .filter((provider) => provider !== undefined);
  return new Map(usable.map((provider) => [provider.id, provider]));
}

function isEnabled(
  id: string,
  { enabled_providers: enabled, disabled_providers: disabled }: Config,
): boolean {
  return (enabled === undefined || enabled.includes(id)) && !disabled?.includes(id);
}

function toProvider(
  id: string,
  config: ProviderConfig | undefined,
  env: Env,
  credentials: Credentials,
): Provider | undefined {
  const preset = presets.find((one) => one.id === id);
  const given = config?.options?.baseURL || config?.api || baseURLFrom(preset, env);
  const baseURL = given ?? preset?.baseURL;
  if (baseURL === undefined) return undefined;
  const key = keyOf(id, preset, config, env, credentials);
  const custom = preset === undefined || (given !== undefined && hostOf(given) !== hostOf(preset.baseURL));
  const local = preset?.local ?? false;
  // What needs no key counts only where somebody pointed at it.
  const usable = key.apiKey !== undefined || given !== undefined || (local && config !== undefined);
  const needsKey = !custom && !local;
  if (!usable || (needsKey && key.apiKey === undefined)) return undefined;
  return {
    id,
    name: config?.name ?? preset?.name ?? id,
    baseURL,
    local,
    known: custom ? [] : (preset?.models ?? []),
    defaultModel: custom ? undefined : preset?.defaultModel,
    ...key,
    config: config ?? {},
    extraModels: namedInEnvironment(id, env),
  };
}

function baseURLFrom(preset: Preset | undefined, env: Env): string | undefined {
  const given = preset?.baseURLVariables?.map((name) => env[name]).find((value) => value);
  if (given === undefined || preset === undefined) return undefined;
  return preset.id === "ollama" ? ollamaURL(given) : given;
}

/** Ollama's variable holds a host, a port or both, and its server's own bind address. */
function ollamaURL(given: string): string | undefined {
  const host = given.startsWith(":") ? `localhost${given}` : given;
  const address = /^https?:\/\//.test(host) ? host : `http://${host}`;
  if (!URL.canParse(address)) return undefined;
  const url = new URL(address);
  if (url.hostname === "0.0.0.0") url.hostname = "localhost";
  if (url.port === "" && url.protocol === "http:") url.port = "11434";
  return url.pathname === "/" ? `${url.origin}/v1` : url.href;
}

function keyOf(
  id: string,
  preset: Preset | undefined,
  config: ProviderConfig | undefined,
  env: Env,
  credentials: Credentials,
): Pick<Provider, "apiKey" | "keyFrom"> {
  const configured = config?.options?.apiKey;
  if (configured) return { apiKey: configured, keyFrom: "configuration" };
  const variable = [...(config?.env ?? []), ...(preset?.keyVariables ?? [])].find((name) => env[name]);
  if (variable !== undefined) return { apiKey: env[variable], keyFrom: variable };
  const stored = Object.hasOwn(credentials, id) ? credentials[id]?.apiKey : undefined;
  return stored ? { apiKey: stored, keyFrom: "credentials.json" } : { apiKey: undefined, keyFrom: undefined };
}

function namedInEnvironment(id: string, env: Env): string[] {
  const wished = [
    id === "openai" && env.OPENAI_MODEL ? `openai/${env.OPENAI_MODEL}` : undefined,
    fairleadModel(env),
  ];
  return wished
    .map((text) => (text === undefined ? undefined : parseModelRef(text)))
    .filter((ref) => ref?.provider === id)
    .map((ref) => ref?.model ?? "");
}

/** `FAIRLEAD_MODEL` names a model with its provider; with `OPENAI_BASE_URL` set, a bare id is that server's. */
function fairleadModel(env: Env): string | undefined {
  const name = env.FAIRLEAD_MODEL;
  if (!name) return undefined;
  const provider = name.split("/", 1)[0];
  const isKnown = name.includes("/") && (!env.OPENAI_BASE_URL || presets.some(({ id }) => id === provider));
  return isKnown || !env.OPENAI_BASE_URL ? name : `openai/${name}`;
}

function listModels(provider: Provider): Model[] {
  const { known, config, extraModels } = provider;
  const ids = new Set([...known.map(({ id }) => id), ...Object.keys(config.models ?? {}), ...extraModels]);
  return [...ids]
    .filter((id) => !config.whitelist || config.whitelist.includes(id))
    .filter((id) => !config.blacklist?.includes(id))
    .map((model) => modelOf(provider, { provider: provider.id, model }));
}

/** Providers have new models more often than this program has releases, so any id is taken. */
function modelOf(provider: Provider, ref: ModelRef): Model {
  const known = provider.known.find(({ id }) => id === ref.model);
  return describeModel(ref, known, modelConfig(provider, ref));
}

const modelConfig = ({ config }: Provider, { model }: ModelRef): ModelConfig | undefined =>
  config.models && Object.hasOwn(config.models, model) ? config.models[model] : undefined;

function endpointOf(provider: Provider, ref: ModelRef, stallMs: number): Endpoint {
  const { options = {} } = provider.config;
  const model = modelConfig(provider, ref);
  const timeout = options.timeout;
  return {
    provider: provider.id,
    baseURL: provider.baseURL,
    apiKey: provider.apiKey,
    headers: { ...options.headers, ...model?.headers },
    modelId: model?.id ?? ref.model,
    options: { ...model?.options, ...variantOptions(ref.variant, model) },
    stallMs: timeout === false ? longestStallMs : (timeout ?? stallMs),
  };
}

/** The longest delay that a timer can have. */
const longestStallMs = 2 ** 31 - 1;

function variantOptions(
  variant: string | undefined,
  model: ModelConfig | undefined,
): Record<string, unknown> {
  if (variant === undefined) return {};
  if (model?.variants && Object.hasOwn(model.variants, variant)) return model.variants[variant] ?? {};
  return { reasoningEffort: variant };
}

interface Choice {
  readonly wishes: { configured?: string; lastUsed?: ModelRef };
  readonly env: Env;
  readonly config: Config;
  readonly providers: ReadonlyMap<string, Provider>;
  readonly find: (ref: ModelRef) => Model | undefined;
}

function chooseDefault({ wishes, env, config, providers, find }: Choice): DefaultModel {
  const named = fairleadModel(env) ?? wishes.configured ?? config.model;
  if (named !== undefined) {
    const ref = parseModelRef(named);
    return found(ref && find(ref)) ?? { outcome: "none", error: unusable(named, config) };
  }
  const only = providers.size === 1 ? [...providers.values()][0] : undefined;
  const openai = providers.has("openai") ? env.OPENAI_MODEL : undefined;
  return (
    found(wishes.lastUsed && find(wishes.lastUsed)) ??
    found(openai ? find({ provider: "openai", model: openai }) : undefined) ??
    found(only && onlyModel(only)) ?? { outcome: "none", error: noModel([...providers.keys()]) }
  );
}

const found = (model: Model | undefined): DefaultModel | undefined => model && { outcome: "found", model };

function onlyModel(provider: Provider): Model | undefined {
  if (provider.defaultModel !== undefined) {
    return modelOf(provider, { provider: provider.id, model: provider.defaultModel });
  }
  const models = listModels(provider);
  return models.length === 1 ? models[0] : undefined;
}

function noModel(providers: readonly string[]): AgentError {
  const message =
    providers.length === 0
      ? 'No model is set up. Run "fairlead setup", or set a key such as OPENAI_API_KEY, or OPENAI_BASE_URL and OPENAI_MODEL for another server, or add a provider to fairlead.json.'
      : `No model is chosen among those of ${providers.join(", ")}. Choose one in the editor, or set "model": "provider/model" in fairlead.json, or FAIRLEAD_MODEL.`;
  return { code: "no-model", message, retryable: false };
}

function unusable(name: string, config: Config): AgentError {
  return {
    code: "no-model",
    message: `The model ${name} cannot be used: ${whyUnusable(name, config)}`,
    retryable: false,
  };
}

function whyUnusable(name: string, config: Config): string {
  const id = parseModelRef(name)?.provider;
  if (id === undefined) return 'write it as "provider/model".';
  if (!isEnabled(id, config)) return `the provider ${id} is switched off in the configuration.`;
  const preset = presets.find((one) => one.id === id);
  if (preset === undefined)
    return `there is no provider ${id}; add it to fairlead.json with options.baseURL.`;
  if (preset.local)
    return `add "provider": {"${id}": {}} to fairlead.json to use ${preset.name} on this machine.`;
  return `${preset.name} has no key. Run "fairlead setup" or set ${preset.keyVariables[0]}.`;
}

async function* failedAtOnce(error: AgentError) {
  yield { type: "failed" as const, error };
}

const summaryOf = ({ id, name, baseURL, local, keyFrom }: Provider): ProviderSummary => ({
  id,
  name,
  baseURL,
  local,
  keyFrom,
});

const hostOf = (url: string): string => (URL.canParse(url) ? new URL(url).host : url);
