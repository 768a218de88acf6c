import { isLoopback } from "../../base/loopback.ts";
import type { Env } from "../../config/paths.ts";
import { checkAddress, getBaseUrl } from "../../config/files/provider-address.ts";
import type { Config, ProviderConfig } from "../../config/schema.ts";
import { parseModelRef, type Preset, presets } from "./catalog.ts";
import type { Credentials } from "../keys/credentials.ts";

/** A provider that can be used. */
export interface Provider {
  readonly id: string;
  readonly name: string;
  readonly baseURL: string;
  readonly local: boolean;
  /** Whether its address differs from the preset's. It may then serve other models. */
  readonly isCustom: boolean;
  /** Whether it serves the models of the catalog: at its own address, or where the editor sends its requests. */
  readonly servesCatalogue: boolean;
  readonly defaultModel: string | undefined;
  readonly apiKey: string | undefined;
  /** Command that prints the key; undefined if the key is known or not needed. */
  readonly keyCommand: readonly string[] | undefined;
  readonly keyFrom: string | undefined;
  readonly config: ProviderConfig;
  /** Models named in environment variables, as written. */
  readonly extraModels: readonly string[];
}

export interface ProviderSources {
  readonly config: Config;
  readonly env: Env;
  readonly credentials: Credentials;
  /** Providers whose own key is not sent. */
  readonly withoutKey?: ReadonlySet<string>;
}

/** Returns the providers that are configured, have a key, or need none. */
export function usableProviders(sources: ProviderSources): Map<string, Provider> {
  const { config } = sources;
  const ids = [...new Set([...presets.map(({ id }) => id), ...Object.keys(config.provider ?? {})])];
  const usable = ids
    .filter((id) => isEnabled(id, config))
    .map((id) => toProvider(id, sources))
    .filter((provider) => provider !== undefined);
  return new Map(usable.map((provider) => [provider.id, provider]));
}

export function isEnabled(
  id: string,
  { enabled_providers: enabled, disabled_providers: disabled }: Config,
): boolean {
  return (enabled === undefined || enabled.includes(id)) && !disabled?.includes(id);
}

function toProvider(id: string, sources: ProviderSources): Provider | undefined {
  const { env, credentials } = sources;
  const hasOwnHeaders = sources.withoutKey?.has(id) === true;
  const config = sources.config.provider?.[id];
  const preset = presets.find((one) => one.id === id);
  if (preset?.onlyWhereNamed && !isNamed(id, sources)) return undefined;
  const written = config && getBaseUrl(config);
  // Do not replace an invalid address with the default one.
  if (config && checkAddress(id, config)) return undefined;
  const given = written ?? baseURLFrom(preset, env);
  const baseURL = given ?? preset?.baseURL;
  if (baseURL === undefined) return undefined;
  const key = hasOwnHeaders ? noKey : findKey(id, preset, config, env, credentials);
  const custom = preset === undefined || (given !== undefined && hostOf(given) !== hostOf(preset.baseURL));
  const servesCatalogue = !custom || hasOwnHeaders;
  const local = preset?.local ?? false;
  // Without a key, a provider is usable only if it was configured.
  const hasKey = key.apiKey !== undefined || key.keyCommand !== undefined;
  const usable = hasKey || given !== undefined || (local && config !== undefined);
  const needsKey = !custom && !local && !hasOwnHeaders;
  if (!usable || (needsKey && !hasKey)) return undefined;
  return {
    id,
    name: config?.name ?? preset?.name ?? id,
    baseURL,
    local,
    isCustom: custom,
    servesCatalogue,
    defaultModel: servesCatalogue ? preset?.defaultModel : undefined,
    ...key,
    config: config ?? {},
    extraModels: listModelsInEnvironment(id, env),
  };
}

function isNamed(id: string, { config, env, credentials }: ProviderSources): boolean {
  const models = [config.model, config.small_model, fairleadModel(env)];
  return (
    config.provider?.[id] !== undefined ||
    Object.hasOwn(credentials, id) ||
    models.some((name) => name?.startsWith(`${id}/`))
  );
}

function baseURLFrom(preset: Preset | undefined, env: Env): string | undefined {
  const given = preset?.baseURLVariables?.map((name) => env[name]?.trim()).find((value) => value);
  if (given === undefined || preset === undefined) return undefined;
  return preset.id === "ollama" ? ollamaURL(given) : addScheme(given);
}

/** Adds the scheme that is often omitted for a server of this machine: `localhost:8000/v1`. */
function addScheme(given: string): string {
  const address = `http://${given}`;
  return isLoopback(address) ? address : given;
}

/** Converts `OLLAMA_HOST`: a host, a port or both. It may be the bind address 0.0.0.0. */
function ollamaURL(given: string): string | undefined {
  const host = given.startsWith(":") ? `localhost${given}` : given;
  const address = /^https?:\/\//.test(host) ? host : `http://${host}`;
  if (!URL.canParse(address)) return undefined;
  const url = new URL(address);
  if (url.hostname === "0.0.0.0") url.hostname = "localhost";
  if (url.port === "" && url.protocol === "http:") url.port = "11434";
  return url.pathname === "/" ? `${url.origin}/v1` : url.href;
}

function findKey(
  id: string,
  preset: Preset | undefined,
  config: ProviderConfig | undefined,
  env: Env,
  credentials: Credentials,
): Pick<Provider, "apiKey" | "keyCommand" | "keyFrom"> {
  const { apiKey: configured, apiKeyCommand: keyCommand } = config?.options ?? {};
  if (configured) return { ...noKey, apiKey: configured, keyFrom: "configuration" };
  if (keyCommand !== undefined) return { ...noKey, keyCommand, keyFrom: `the command ${keyCommand[0]}` };
  const variable = [...(config?.env ?? []), ...(preset?.keyVariables ?? [])].find((name) => env[name]);
  if (variable !== undefined) return { ...noKey, apiKey: env[variable], keyFrom: variable };
  const stored = Object.hasOwn(credentials, id) ? credentials[id]?.apiKey : undefined;
  return stored ? { ...noKey, apiKey: stored, keyFrom: "credentials.json" } : noKey;
}

const noKey = { apiKey: undefined, keyCommand: undefined, keyFrom: undefined };

/** Returns the names of models in environment variables, with their efforts. */
function listModelsInEnvironment(id: string, env: Env): string[] {
  const names = [
    id === "openai" && env.OPENAI_MODEL ? `openai/${env.OPENAI_MODEL}` : undefined,
    fairleadModel(env),
  ];
  return names
    .map((name) => (name === undefined ? undefined : parseModelRef(name, false)))
    .flatMap((ref) => (ref?.provider === id ? [ref.model] : []));
}

/** Returns `FAIRLEAD_MODEL`. If `OPENAI_BASE_URL` is set, ids without a provider belong to that server. */
export function fairleadModel(env: Env): string | undefined {
  const name = env.FAIRLEAD_MODEL;
  if (!name) return undefined;
  const provider = name.split("/", 1)[0];
  const isKnown = name.includes("/") && (!env.OPENAI_BASE_URL || presets.some(({ id }) => id === provider));
  return isKnown || !env.OPENAI_BASE_URL ? name : `openai/${name}`;
}

const hostOf = (url: string): string => (URL.canParse(url) ? new URL(url).host : url);
