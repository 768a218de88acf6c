import { orWhenAborted } from "../../base/async.ts";
import { isLoopback } from "../../base/loopback.ts";
import { messageOf } from "../../base/errors.ts";
import type { Api } from "../../config/api.ts";
import type { Log } from "../../base/log.ts";
import { checkAddress, checkAddresses, type AddressProblem } from "../../config/files/provider-address.ts";
import type { Config } from "../../config/schema.ts";
import type { Env } from "../../config/paths.ts";
import type { AgentError, ModelRef } from "../../message/message.ts";
import { formatModelRef, presets } from "../catalog/catalog.ts";
import { describeMissingEffort } from "../catalog/efforts.ts";
import type { Credentials } from "../keys/credentials.ts";
import { cancelled } from "../cancelled.ts";
import { Catalog } from "../catalog/known-models.ts";
import type { ApiCheck } from "../catalog/check-api.ts";
import { findMissingFeatures, type MissingFeature } from "../catalog/missing-features.ts";
import type { ListedModels } from "../catalog/list-models.ts";
import { type Send, sendHttp } from "../http.ts";
import { failed, LazyCalls } from "./lazy-calls.ts";
import { modelConfig, providerApi, ProviderModels } from "./provider-models.ts";
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
  /** Model lists of servers, by provider. */
  readonly lists?: ReadonlyMap<string, ModelList>;
  /** Requests a provider's models and stores the list. */
  readonly refreshList?: (provider: Provider) => Promise<ListedModels>;
  readonly log: Log;
  readonly send?: Send;
  /** Providers whose own key is not sent. */
  readonly withoutKey?: ReadonlySet<string>;
  /** Keys printed by commands. */
  readonly keyCommands?: KeyCommands;
  /** Media that models rejected. */
  readonly refusedMedia?: RefusedMedia;
}

/** A usable provider, without its key. */
export interface ProviderSummary {
  readonly id: string;
  readonly name: string;
  readonly baseURL: string;
  readonly local: boolean;
  /** The API of its models, if they do not have another one. */
  readonly api: Api;
  /** Source of its key; undefined if it has none. */
  readonly keyFrom: string | undefined;
}

export type DefaultModel = { outcome: "found"; model: Model } | { outcome: "none"; error: AgentError };

export interface OpenModels extends Models {
  providers(): readonly ProviderSummary[];
  /**
   * Returns the model to start with: `FAIRLEAD_MODEL`, the configured one, the last used, `OPENAI_MODEL`, or the only
   * provider's default. Never guesses among several providers and never replaces a named model.
   */
  defaultModel(wishes?: { configured?: string; lastUsed?: ModelRef }): DefaultModel;
  /** Returns the model for a reference, with its effort in the name or as `variant`; or an error with the reason. */
  choose(ref: ModelRef): DefaultModel;
  chooseByName(name: string): DefaultModel;
  /** Parses `provider/model[:variant]`. Returns undefined if the model cannot be used. */
  findByName(text: string): Model | undefined;
  /** Returns whether the window may be queried without a command: local server, no configured window. */
  mayAskWindow(model: Model): boolean;
  /** Requests the context window from a local server, in tokens, within a second. Undefined for other servers. */
  askWindow(model: Model, signal: AbortSignal): Promise<number | undefined>;
  /** Requests a provider's models. They are available when the configuration is opened again. */
  discover(provider: string): Promise<ListedModels>;
  /** Checks with one request that a provider answers, accepts the key and has the model. Runs no key command. */
  check(provider: string, model?: ModelRef): Promise<ProviderState>;
  /** Returns the features that a model runs without. */
  missingFeatures(model: Model): readonly MissingFeature[];
}

/** The result of checking a provider. */
export type ProviderState =
  /** `api` is the result for the model's API, if it is not chat completions. */
  | { outcome: "answers"; modelCount: number; api?: { name: Api; check: ApiCheck } }
  | { outcome: "lacks-model"; models: readonly string[] }
  | { outcome: "failed"; message: string }
  /** No request was made, because a command prints the key. */
  | { outcome: "unasked" };

/** Opens the models of all providers that are configured, have a key, or need none. Makes no request. */
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
  const providerModels = new ProviderModels({ providers, catalog, lists });
  const list = () => providerModels.list();
  const calls = new LazyCalls({ send, log });
  const stallMs = config.retry?.stall_ms;

  // The editor answers the requests of routed providers itself.
  const isAskable = ({ id, baseURL }: Provider) => isLoopback(baseURL) && !withoutKey.has(id);

  const mayAskWindow = ({ ref }: Model): boolean => {
    const provider = providers.get(ref.provider);
    return provider !== undefined && isAskable(provider) && !modelConfig(provider, ref)?.limit?.context;
  };
  const find = (ref: ModelRef): Model | undefined => {
    const model = providerModels.find(ref);
    return model && refusedMedia.applyTo(model, providers.get(ref.provider)?.baseURL ?? "");
  };
  const chooseByName = (name: string): DefaultModel => {
    const parsed = providerModels.parse(name);
    if (parsed.outcome === "unknown-effort") return { outcome: "none", error: unknownEffortError(parsed) };
    const model = parsed.outcome === "parsed" ? find(parsed.ref) : undefined;
    return found(model) ?? { outcome: "none", error: unusableModelError(name, config) };
  };

  return {
    list,
    find,
    findByName(name) {
      const choice = chooseByName(name);
      return choice.outcome === "found" ? choice.model : undefined;
    },
    // A `variant` may have any name; a suffix of the model name only a known one.
    choose: (ref) =>
      (ref.variant === undefined ? undefined : found(find(ref))) ?? chooseByName(formatModelRef(ref)),
    chooseByName,
    costOf,
    refuses(model, media) {
      const provider = providers.get(model.ref.provider);
      if (provider !== undefined) refusedMedia.add(model, media, provider.baseURL);
    },
    providers: () => [...providers.values()].map(summaryOf),
    defaultModel: (wishes = {}) =>
      chooseDefault({ wishes, env, config, providers, find, list, chooseByName }),
    mayAskWindow,
    async askWindow({ ref }, signal) {
      const provider = providers.get(ref.provider);
      if (provider === undefined || !isAskable(provider)) return undefined;
      const { askWindow } = await import("../catalog/server-window.ts");
      return askWindow(provider, modelConfig(provider, ref)?.id ?? ref.model, signal);
    },
    async discover(id) {
      const provider = providers.get(id);
      if (provider !== undefined && refreshList !== undefined) return refreshList(provider);
      return { outcome: "failed", message: explainUnusable(`${id}/`, config) };
    },
    async check(id, model) {
      const provider = providers.get(id);
      if (provider === undefined) return { outcome: "failed", message: explainUnusable(`${id}/`, config) };
      return checkState(provider, model && providerModels.find(model));
    },
    missingFeatures(model) {
      const provider = providers.get(model.ref.provider);
      return provider === undefined ? [] : findMissingFeatures(model, provider, mayAskWindow(model));
    },
    async call(request, take) {
      const provider = providers.get(request.model.ref.provider);
      if (provider === undefined)
        return failed(unusableModelError(formatModelRef(request.model.ref), config));
      // The endpoint has the options of the agent.
      const { options, ...call } = request;
      const endpoint = {
        ...providerModels.endpointOf(provider, request.model, options),
        stallMs: stallLimit(provider, request.model, stallMs),
      };
      const { keyCommand } = provider;
      if (keyCommand === undefined) return calls.call(call, endpoint, take);
      const callWith = (apiKey: string) => calls.call(call, { ...endpoint, apiKey }, take);
      return callWithKey(keyCommand, keyCommands, callWith, request.signal);
    },
  };
}

async function checkState(provider: Provider, model: Model | undefined): Promise<ProviderState> {
  if (provider.keyCommand !== undefined) return { outcome: "unasked" };
  const { checkProvider } = await import("../catalog/list-models.ts");
  const checked = await checkProvider(provider);
  if (checked.outcome === "failed") return { outcome: "failed", message: checked.error.message };
  const { models } = checked;
  const id = model && (modelConfig(provider, model.ref)?.id ?? model.ref.model);
  const isListed = id === undefined || models.length === 0 || models.some((one) => isSameModel(one, id));
  if (!isListed) return { outcome: "lacks-model", models };
  const answers = { outcome: "answers", modelCount: models.length } as const;
  const name = model?.api;
  if (name === undefined || name === "chat") return answers;
  const { checkApi } = await import("../catalog/check-api.ts");
  return { ...answers, api: { name, check: await checkApi(provider, name) } };
}

/** Compares model ids. Ollama lists the tag `:latest`, Google the prefix `models/`. */
const isSameModel = (listed: string, id: string): boolean =>
  listed === id || listed === `${id}:latest` || listed === `models/${id}`;

/** Returns how long a call may be silent: the provider's timeout, the configured one or the default. */
function stallLimit({ local, config }: Provider, { api }: Model, configuredMs: number | undefined): number {
  const timeout = config.options?.timeout;
  if (timeout === false) return longestStallMs;
  if (timeout !== undefined || configuredMs !== undefined) return timeout ?? configuredMs ?? defaultStallMs;
  if (local) return localStallMs;
  return api === "responses" ? thinkingStallMs : defaultStallMs;
}

/** The longest delay of a timer. */
const longestStallMs = 2 ** 31 - 1;

const defaultStallMs = 120_000;

/** Over Responses, a model that thinks without a summary sends nothing. */
const thinkingStallMs = 300_000;

/** A local model may process a long prompt for minutes before its first token. */
const localStallMs = 600_000;

interface DefaultModelOptions {
  readonly wishes: { configured?: string; lastUsed?: ModelRef };
  readonly env: Env;
  readonly config: Config;
  readonly providers: ReadonlyMap<string, Provider>;
  readonly find: (ref: ModelRef) => Model | undefined;
  readonly list: () => readonly Model[];
  readonly chooseByName: (name: string) => DefaultModel;
}

function chooseDefault({
  wishes,
  env,
  config,
  providers,
  find,
  list,
  chooseByName,
}: DefaultModelOptions): DefaultModel {
  const named = fairleadModel(env) ?? wishes.configured ?? config.model;
  if (named !== undefined) return chooseByName(named);
  const { lastUsed } = wishes;
  if (lastUsed !== undefined) {
    return (
      found(find(lastUsed)) ?? { outcome: "none", error: lostModelError(formatModelRef(lastUsed), config) }
    );
  }
  const only = providers.size === 1 ? [...providers.values()][0] : undefined;
  const openai = providers.has("openai") ? env.OPENAI_MODEL : undefined;
  return (
    found(openai ? find({ provider: "openai", model: openai }) : undefined) ??
    found(only && onlyModel(only, find, list)) ?? {
      outcome: "none",
      error: noModelError([...providers.keys()], list(), config),
    }
  );
}

const found = (model: Model | undefined): DefaultModel | undefined => model && { outcome: "found", model };

function onlyModel(
  { id, defaultModel }: Provider,
  find: DefaultModelOptions["find"],
  list: DefaultModelOptions["list"],
): Model | undefined {
  if (defaultModel !== undefined) return find({ provider: id, model: defaultModel });
  const [model, ...others] = list();
  return model !== undefined && others.length === 0 ? find(model.ref) : undefined;
}

function noModelError(providers: readonly string[], models: readonly Model[], config: Config): AgentError {
  return { code: "no-model", message: explainNoModel(providers, models, config), retryable: false };
}

/** Maximum number of models listed in an error. */
const listedModelsLimit = 8;

function explainNoModel(providers: readonly string[], models: readonly Model[], config: Config): string {
  const how = `in the editor, with --model in "fairlead run", as "model": "provider/model" in fairlead.json, or in FAIRLEAD_MODEL`;
  if (models.length > 0) {
    const names = models.slice(0, listedModelsLimit).map(({ ref }) => formatModelRef(ref));
    const more =
      models.length > names.length
        ? `, and ${models.length - names.length} more ("fairlead models" lists them)`
        : "";
    return `No model is chosen among those of ${providers.join(", ")}: ${names.join(", ")}${more}. Choose one ${how}.`;
  }
  if (providers.length > 0)
    return `No model is chosen among those of ${providers.join(", ")}, and none is known. Run "fairlead models --discover${providers.length === 1 ? ` ${providers[0]}` : ""}" to ask for them, and name one ${how}.`;
  const [fault] = checkAddresses(config);
  if (fault !== undefined) return `No model can be used: ${wrongAddress(fault)}`;
  return 'No model is set up. Run "fairlead setup", or set a key such as OPENAI_API_KEY, or OPENAI_BASE_URL and OPENAI_MODEL for another server, or add a provider to fairlead.json.';
}

const wrongAddress = ({ path, message }: AddressProblem): string =>
  `${path.join(".")} ${message}. "fairlead config show ${path.join(".")}" names the file that sets it.`;

function unusableModelError(name: string, config: Config): AgentError {
  return {
    code: "no-model",
    message: `The model ${name} cannot be used: ${explainUnusable(name, config)}`,
    retryable: false,
  };
}

function unknownEffortError({ model, effort }: { model: Model; effort: string }): AgentError {
  const { provider, model: id } = model.ref;
  return {
    code: "no-model",
    message: `${describeMissingEffort(model, effort)} Write ${provider}/${id} without ":${effort}" or with another effort.`,
    retryable: false,
  };
}

/** Error for a last used model that is gone. It is not replaced by another one: the user chooses. */
function lostModelError(name: string, config: Config): AgentError {
  const { message } = unusableModelError(name, config);
  return {
    code: "no-model",
    message: `${message} It is the one last used in this project; choose another one in the editor, or set "model" in fairlead.json.`,
    retryable: false,
  };
}

function explainUnusable(name: string, config: Config): string {
  const [id, model] = name.split("/", 2);
  if (!id || model === undefined) return 'write it as "provider/model".';
  if (!isEnabled(id, config)) return `the provider ${id} is switched off in the configuration.`;
  const written = config.provider?.[id];
  const fault = written && checkAddress(id, written);
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
    return `provider.${id}.options.apiKey is empty. Write a key, or set the variable that it names; "fairlead config show provider.${id}" names the file that sets it.`;
  return `${preset.name} has no key. Run "fairlead setup" or set ${preset.keyVariables[0]}.`;
}

/** Providers that OpenCode supports and whose protocol or login Fairlead does not support. */
const foreignProviders: ReadonlyMap<string, string> = new Map([
  ["amazon-bedrock", "Amazon Bedrock"],
  ["azure", "Azure OpenAI"],
  ["azure-cognitive-services", "Azure"],
  ["github-copilot", "GitHub Copilot"],
  ["google-vertex", "Google Vertex AI"],
  ["google-vertex-anthropic", "Google Vertex AI"],
]);

/** Calls with the key of a command. Fails with an auth error if the command fails. */
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

const summaryOf = (provider: Provider): ProviderSummary => {
  const { id, name, baseURL, local, keyFrom } = provider;
  return { id, name, baseURL, local, api: providerApi(provider), keyFrom };
};
