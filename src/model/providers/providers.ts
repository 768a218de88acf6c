import { orWhenAborted } from "../../base/async.ts";
import { isLoopback } from "../../base/loopback.ts";
import { messageOf } from "../../base/errors.ts";
import type { Log } from "../../base/log.ts";
import { addressFault, addressFaults, type AddressFault } from "../../config/files/provider-address.ts";
import type { Config, ModelConfig } from "../../config/schema.ts";
import type { Env } from "../../config/paths.ts";
import type { AgentError, ModelRef } from "../../message/message.ts";
import { describeModel, formatModelRef, parseModelRef, presets } from "../catalog/catalog.ts";
import type { Endpoint } from "../client.ts";
import type { Credentials } from "../keys/credentials.ts";
import { cancelled } from "../cancelled.ts";
import { Catalog, type KnownModel } from "../catalog/known-models.ts";
import type { ListedModels } from "../catalog/list-models.ts";
import { type Send, sendHttp } from "../http.ts";
import { failed, LazyCalls } from "./lazy-calls.ts";
import { KeyCommands } from "../keys/key-command.ts";
import type { Model, Models, StepEnd } from "../model.ts";
import type { ModelList } from "../catalog/model-lists.ts";
import { RefusedMedia } from "../request/refused-media.ts";
import { costOf } from "../answer/usage.ts";
import { fairleadModel, isEnabled, type Provider, usableProviders } from "../catalog/usable-providers.ts";

export interface OpenModelsOptions {
  readonly config: Config;
  readonly env: Env;
  readonly credentials: Credentials;
  readonly catalog?: Catalog;
  /** What servers said of their models, by provider. */
  readonly lists?: ReadonlyMap<string, ModelList>;
  /** Asks a provider for its models and keeps what it says. */
  readonly refreshList?: (provider: Provider) => Promise<ListedModels>;
  readonly log: Log;
  readonly send?: Send;
  /** Providers that are asked without a key of their own. */
  readonly withoutKey?: ReadonlySet<string>;
  /** Keys that programs print. */
  readonly keyCommands?: KeyCommands;
  /** What models refused to be sent. */
  readonly refusedMedia?: RefusedMedia;
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
  /** The model that is meant, its effort written behind its name or apart; an error that says why there is none. */
  choose(ref: ModelRef): DefaultModel;
  chooseByName(name: string): DefaultModel;
  /** The model that a text names (`provider/model[:variant]`), if its provider can be used. */
  findByName(text: string): Model | undefined;
  /** Whether the model's server is on this machine and its window is not configured, so that it is asked unasked. */
  mayAskWindow(model: Model): boolean;
  /** Asks the model's server for its window, in tokens, within a second. Only servers on this machine are asked. */
  askWindow(model: Model, signal: AbortSignal): Promise<number | undefined>;
  /** Asks a provider which models it has; they are known when the configuration is opened the next time. */
  discover(provider: string): Promise<ListedModels>;
  /** Asks a provider once whether it answers, takes the key and has the model. A command for its key is not run. */
  check(provider: string, model?: ModelRef): Promise<ProviderState>;
}

/** What one request to a provider showed. */
export type ProviderState =
  | { outcome: "answers"; modelCount: number }
  | { outcome: "lacks-model"; models: readonly string[] }
  | { outcome: "failed"; message: string }
  /** Nothing was asked: a command prints the key. */
  | { outcome: "unasked" };

/** The models of all providers that are configured, have a key, or need none. Makes no request. */
export function openModels({
  config,
  env,
  credentials,
  log,
  catalog = new Catalog(log),
  lists,
  refreshList,
  send = sendHttp,
  withoutKey = new Set(),
  keyCommands = new KeyCommands(env, () => {}),
  refusedMedia = new RefusedMedia(),
}: OpenModelsOptions): OpenModels {
  const providers = usableProviders({ config, env, credentials, withoutKey });
  const known = new KnownModels(catalog, lists);
  let listed: readonly Model[] | undefined;
  const list = () => (listed ??= [...providers.values()].flatMap((provider) => listModels(provider, known)));
  const calls = new LazyCalls({ send, log });
  const stallMs = config.retry?.stall_ms;

  // Where the editor sends a provider's requests it answers them itself.
  const isAskable = ({ id, baseURL }: Provider) => isLoopback(baseURL) && !withoutKey.has(id);

  const find = (ref: ModelRef): Model | undefined => {
    const provider = providers.get(ref.provider);
    return provider && refusedMedia.applyTo(modelOf(provider, ref, known), provider.baseURL);
  };
  const findByName = (text: string): Model | undefined => {
    const ref = parseModelRef(text);
    return ref && find(ref);
  };
  const chooseByName = (name: string): DefaultModel =>
    found(findByName(name)) ?? { outcome: "none", error: unusable(name, config) };

  return {
    list,
    find,
    findByName,
    // An effort that stands apart may have any name, one behind the model's only a known one.
    choose: (ref) =>
      (ref.variant === undefined ? undefined : found(find(ref))) ?? chooseByName(formatModelRef(ref)),
    chooseByName,
    costOf,
    refuses(model, media) {
      const provider = providers.get(model.ref.provider);
      if (provider !== undefined) refusedMedia.add(model, media, provider.baseURL);
    },
    providers: () => [...providers.values()].map(summaryOf),
    defaultModel: (wishes = {}) => chooseDefault({ wishes, env, config, providers, find, list }),
    mayAskWindow({ ref }) {
      const provider = providers.get(ref.provider);
      return provider !== undefined && isAskable(provider) && !modelConfig(provider, ref)?.limit?.context;
    },
    async askWindow({ ref }, signal) {
      const provider = providers.get(ref.provider);
      if (provider === undefined || !isAskable(provider)) return undefined;
      const { askWindow } = await import("../catalog/server-window.ts");
      return askWindow(provider, modelConfig(provider, ref)?.id ?? ref.model, signal);
    },
    async discover(id) {
      const provider = providers.get(id);
      if (provider !== undefined && refreshList !== undefined) return refreshList(provider);
      return { outcome: "failed", message: whyUnusable(`${id}/`, config) };
    },
    async check(id, model) {
      const provider = providers.get(id);
      if (provider === undefined) return { outcome: "failed", message: whyUnusable(`${id}/`, config) };
      return checkState(provider, model);
    },
    async call(request, take) {
      const provider = providers.get(request.model.ref.provider);
      if (provider === undefined) return failed(unusable(formatModelRef(request.model.ref), config));
      const endpoint = endpointOf(provider, request.model.ref, stallMs);
      const { keyCommand } = provider;
      if (keyCommand === undefined) return calls.call(request, endpoint, take);
      const call = (apiKey: string) => calls.call(request, { ...endpoint, apiKey }, take);
      return callWithKey(keyCommand, keyCommands, call, request.signal);
    },
  };
}

async function checkState(provider: Provider, model: ModelRef | undefined): Promise<ProviderState> {
  if (provider.keyCommand !== undefined) return { outcome: "unasked" };
  const { checkProvider } = await import("../catalog/list-models.ts");
  const checked = await checkProvider(provider);
  if (checked.outcome === "failed") return { outcome: "failed", message: checked.error.message };
  const { models } = checked;
  const id = model && (modelConfig(provider, model)?.id ?? model.model);
  const isListed = id === undefined || models.length === 0 || models.some((one) => isSameModel(one, id));
  return isListed ? { outcome: "answers", modelCount: models.length } : { outcome: "lacks-model", models };
}

/** Ollama lists the tag that it adds to a name without one, Google a folder. */
const isSameModel = (listed: string, id: string): boolean =>
  listed === id || listed === `${id}:latest` || listed === `models/${id}`;

/** What the catalogue and the servers' own lists say of models. */
class KnownModels {
  readonly #catalog: Catalog;
  readonly #lists: ReadonlyMap<string, ModelList>;
  readonly #merged = new Map<string, ReadonlyMap<string, KnownModel>>();

  constructor(catalog: Catalog, lists: ReadonlyMap<string, ModelList> = new Map()) {
    this.#catalog = catalog;
    this.#lists = lists;
  }

  /** A server's own word counts more than the catalogue's, which does not count at another address at all. */
  of(provider: Provider): ReadonlyMap<string, KnownModel> {
    const merged = this.#merged.get(provider.id) ?? this.#merge(provider);
    this.#merged.set(provider.id, merged);
    return merged;
  }

  #merge({ id, isCustom }: Provider): ReadonlyMap<string, KnownModel> {
    const models = new Map<string, KnownModel>();
    if (!isCustom) for (const model of this.#catalog.modelsOf(id)) models.set(model.id, model);
    for (const model of this.#lists.get(id)?.models ?? []) {
      const before = models.get(model.id);
      models.set(model.id, before === undefined ? model : { ...before, ...model, name: before.name });
    }
    return models;
  }
}

function listModels(provider: Provider, known: KnownModels): Model[] {
  const { config, extraModels } = provider;
  const ids = new Set([...known.of(provider).keys(), ...Object.keys(config.models ?? {}), ...extraModels]);
  return [...ids]
    .filter((id) => !config.whitelist || config.whitelist.includes(id))
    .filter((id) => !config.blacklist?.includes(id))
    .map((model) => modelOf(provider, { provider: provider.id, model }, known));
}

/** Providers have new models more often than this program has releases, so any id is taken. */
function modelOf(provider: Provider, ref: ModelRef, known: KnownModels): Model {
  return describeModel(ref, known.of(provider).get(ref.model), modelConfig(provider, ref));
}

const modelConfig = ({ config }: Provider, { model }: ModelRef): ModelConfig | undefined =>
  config.models && Object.hasOwn(config.models, model) ? config.models[model] : undefined;

function endpointOf(provider: Provider, ref: ModelRef, configuredMs: number | undefined): Endpoint {
  const { options = {} } = provider.config;
  const model = modelConfig(provider, ref);
  const timeout = options.timeout;
  const stallMs = configuredMs ?? (provider.local ? localStallMs : defaultStallMs);
  return {
    provider: provider.id,
    baseURL: provider.baseURL,
    apiKey: provider.apiKey,
    headers: { ...options.headers, ...model?.headers },
    modelId: model?.id ?? ref.model,
    options: { ...model?.options, ...variantOptions(ref.variant, model) },
    ...(options.includeUsage !== undefined && { asksForUsage: options.includeUsage }),
    stallMs: timeout === false ? longestStallMs : (timeout ?? stallMs),
  };
}

/** The longest delay that a timer can have. */
const longestStallMs = 2 ** 31 - 1;

const defaultStallMs = 120_000;

/** A model on the person's machine may read a long prompt for minutes before its first word. */
const localStallMs = 600_000;

function variantOptions(
  variant: string | undefined,
  model: ModelConfig | undefined,
): Record<string, unknown> {
  if (variant === undefined) return {};
  if (!model?.variants || !Object.hasOwn(model.variants, variant)) return { reasoningEffort: variant };
  const { disabled: _, ...options } = model.variants[variant] ?? {};
  return options;
}

interface Choice {
  readonly wishes: { configured?: string; lastUsed?: ModelRef };
  readonly env: Env;
  readonly config: Config;
  readonly providers: ReadonlyMap<string, Provider>;
  readonly find: (ref: ModelRef) => Model | undefined;
  readonly list: () => readonly Model[];
}

function chooseDefault({ wishes, env, config, providers, find, list }: Choice): DefaultModel {
  const named = fairleadModel(env) ?? wishes.configured ?? config.model;
  if (named !== undefined) {
    const ref = parseModelRef(named);
    return found(ref && find(ref)) ?? { outcome: "none", error: unusable(named, config) };
  }
  const { lastUsed } = wishes;
  if (lastUsed !== undefined) {
    return found(find(lastUsed)) ?? { outcome: "none", error: lost(formatModelRef(lastUsed), config) };
  }
  const only = providers.size === 1 ? [...providers.values()][0] : undefined;
  const openai = providers.has("openai") ? env.OPENAI_MODEL : undefined;
  return (
    found(openai ? find({ provider: "openai", model: openai }) : undefined) ??
    found(only && onlyModel(only, find, list)) ?? {
      outcome: "none",
      error: noModel([...providers.keys()], list(), config),
    }
  );
}

const found = (model: Model | undefined): DefaultModel | undefined => model && { outcome: "found", model };

function onlyModel(
  { id, defaultModel }: Provider,
  find: Choice["find"],
  list: Choice["list"],
): Model | undefined {
  if (defaultModel !== undefined) return find({ provider: id, model: defaultModel });
  const [model, ...others] = list();
  return model !== undefined && others.length === 0 ? find(model.ref) : undefined;
}

function noModel(providers: readonly string[], models: readonly Model[], config: Config): AgentError {
  return { code: "no-model", message: whyNone(providers, models, config), retryable: false };
}

/** Models that are named as examples of what can be chosen. */
const namedModels = 8;

function whyNone(providers: readonly string[], models: readonly Model[], config: Config): string {
  const how = `in the editor, with --model in "fairlead run", as "model": "provider/model" in fairlead.json, or in FAIRLEAD_MODEL`;
  if (models.length > 0) {
    const names = models.slice(0, namedModels).map(({ ref }) => formatModelRef(ref));
    const more =
      models.length > names.length
        ? `, and ${models.length - names.length} more ("fairlead models" lists them)`
        : "";
    return `No model is chosen among those of ${providers.join(", ")}: ${names.join(", ")}${more}. Choose one ${how}.`;
  }
  if (providers.length > 0)
    return `No model is chosen among those of ${providers.join(", ")}, and none is known. Run "fairlead models --discover${providers.length === 1 ? ` ${providers[0]}` : ""}" to ask for them, and name one ${how}.`;
  const [fault] = addressFaults(config);
  if (fault !== undefined) return `No model can be used: ${wrongAddress(fault)}`;
  return 'No model is set up. Run "fairlead setup", or set a key such as OPENAI_API_KEY, or OPENAI_BASE_URL and OPENAI_MODEL for another server, or add a provider to fairlead.json.';
}

const wrongAddress = ({ path, message }: AddressFault): string =>
  `${path.join(".")} ${message}. "fairlead config show ${path.join(".")}" says in which file it stands.`;

function unusable(name: string, config: Config): AgentError {
  return {
    code: "no-model",
    message: `The model ${name} cannot be used: ${whyUnusable(name, config)}`,
    retryable: false,
  };
}

/** The model that worked here before is not replaced by another one: the person says which. */
function lost(name: string, config: Config): AgentError {
  const { message } = unusable(name, config);
  return {
    code: "no-model",
    message: `${message} It is the one last used in this project; choose another one in the editor, or set "model" in fairlead.json.`,
    retryable: false,
  };
}

function whyUnusable(name: string, config: Config): string {
  const [id, model] = name.split("/", 2);
  if (!id || model === undefined) return 'write it as "provider/model".';
  if (!isEnabled(id, config)) return `the provider ${id} is switched off in the configuration.`;
  const written = config.provider?.[id];
  const fault = written && addressFault(id, written);
  if (fault !== undefined) return wrongAddress(fault);
  const preset = presets.find((one) => one.id === id);
  const foreign = foreignProviders.get(id);
  if (preset === undefined && foreign !== undefined)
    return `Fairlead does not speak the protocol of ${foreign}. Use its models through OpenRouter, or through an OpenAI-compatible address in provider.${id}.options.baseURL.`;
  if (preset === undefined && written !== undefined)
    return `the provider ${id} has no address in the configuration; set its options.baseURL.`;
  if (preset === undefined)
    return `there is no provider ${id}; add it to fairlead.json with options.baseURL.`;
  if (preset.local || preset.onlyWhereNamed)
    return `add "provider": {"${id}": {}} to fairlead.json to use ${preset.name}${preset.local ? " on this machine" : ` with the key in ${preset.keyVariables[0]}`}.`;
  if (written?.options?.apiKey === "")
    return `provider.${id}.options.apiKey is empty. Write a key, or set the variable that it names; "fairlead config show provider.${id}" says where it stands.`;
  return `${preset.name} has no key. Run "fairlead setup" or set ${preset.keyVariables[0]}.`;
}

/** Providers that OpenCode knows and that have protocols or logins of their own. */
const foreignProviders: ReadonlyMap<string, string> = new Map([
  ["amazon-bedrock", "Amazon Bedrock"],
  ["azure", "Azure OpenAI"],
  ["azure-cognitive-services", "Azure"],
  ["github-copilot", "GitHub Copilot"],
  ["google-vertex", "Google Vertex AI"],
  ["google-vertex-anthropic", "Google Vertex AI"],
]);

/** A key that cannot be had fails the call as a wrong one would. */
async function callWithKey(
  command: readonly string[],
  keyCommands: KeyCommands,
  call: (apiKey: string) => Promise<StepEnd>,
  signal: AbortSignal,
): Promise<StepEnd> {
  const key = keyCommands.keyOf(command).catch((error: unknown): AgentError => {
    return { code: "auth", message: messageOf(error), retryable: false };
  });
  const found = await orWhenAborted(key, signal, cancelled());
  if (typeof found !== "string") return failed(found);
  const end = await call(found);
  if (end.type === "failed" && end.error.code === "auth") keyCommands.forget(command);
  return end;
}

const summaryOf = ({ id, name, baseURL, local, keyFrom }: Provider): ProviderSummary => ({
  id,
  name,
  baseURL,
  local,
  keyFrom,
});
