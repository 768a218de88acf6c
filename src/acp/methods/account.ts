import type { ProviderInfo } from "@agentclientprotocol/sdk/unstable";
import type { Api } from "../../config/api.ts";
import { authRequired, invalidParams } from "../errors.ts";
import { authMethodId, setupMethodId } from "../initialize.ts";

/** The user's providers and API keys. */
export interface Account {
  /** Returns a message for the user if no model is available; undefined otherwise. */
  missingModel(): Promise<string | undefined>;
  /** Returns the usable providers. */
  providers(): Promise<readonly AccountProvider[]>;
  /** Returns the providers that the editor disabled. */
  disabledProviders(): readonly string[];
  /** Removes all stored API keys. */
  removeKeys(): Promise<void>;
  /** Redirects a provider's requests to another URL, with these headers and no stored key, until the process ends. */
  route(id: string, route: ProviderRoute): Promise<void>;
  /** Disables a provider until the process ends. */
  disable(id: string): Promise<void>;
}

export interface AccountProvider {
  readonly id: string;
  readonly name: string;
  readonly baseURL: string;
  readonly api: Api;
  /** The editor's name of the API, if it routes the provider. */
  readonly apiType: string | undefined;
  readonly keyFrom: string | undefined;
}

export interface ProviderRoute {
  readonly baseURL: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly apiType: string;
  readonly apis: readonly Api[];
}

/** The API types of the protocol and the APIs that they mean. The configuration chooses among several. */
const apiTypes: ReadonlyMap<string, readonly Api[]> = new Map([
  ["openai", ["chat", "responses"]],
  ["anthropic", ["messages"]],
  ["azure", ["responses"]],
]);
const supported = [...apiTypes.keys()];

/** Providers that are listed even if they are not set up, so that an editor can route them. */
const routableProviders = ["openai", "anthropic"];

export async function logOut(account: Account): Promise<Record<string, never>> {
  await account.removeKeys();
  return {};
}

/** Lists the usable providers, and those that the editor disabled or may set up, which have no current configuration. */
export async function listProviders(account: Account): Promise<{ providers: ProviderInfo[] }> {
  const usable = await account.providers();
  const others = new Set([...account.disabledProviders(), ...routableProviders]);
  for (const { id } of usable) others.delete(id);
  const info = (id: string) => ({ providerId: id, supported, required: false });
  return {
    providers: [
      ...usable.map((provider) => ({ ...info(provider.id), current: describeCurrent(provider) })),
      ...[...others].map((id) => ({ ...info(id), current: null })),
    ],
  };
}

function describeCurrent({ baseURL, api, apiType }: AccountProvider) {
  return { apiType: apiType ?? (api === "messages" ? "anthropic" : "openai"), baseUrl: baseURL };
}

export async function setProvider(
  account: Account,
  params: { providerId: string; apiType: string; baseUrl: string; headers?: Record<string, string> | null },
): Promise<Record<string, never>> {
  const { apiType } = params;
  const apis = apiTypes.get(apiType);
  if (apis === undefined)
    throw invalidParams(`The API "${apiType}" is not supported. Use ${supported.join(", ")}.`);
  if (!isWebAddress(params.baseUrl))
    throw invalidParams(`baseUrl must be an http or https URL, not "${params.baseUrl}".`);
  await account.route(params.providerId, {
    baseURL: params.baseUrl,
    headers: params.headers ?? {},
    apiType,
    apis,
  });
  return {};
}

export async function disableProvider(account: Account, id: string): Promise<Record<string, never>> {
  await account.disable(id);
  return {};
}

/** Succeeds if a model is available; otherwise throws with the problem. */
export async function authenticate(account: Account, methodId: string): Promise<Record<string, never>> {
  if (methodId !== authMethodId && methodId !== setupMethodId)
    throw invalidParams(`Authentication method "${methodId}" not found.`);
  const problem = await account.missingModel();
  if (problem !== undefined) throw authRequired(problem);
  return {};
}

function isWebAddress(text: string): boolean {
  return URL.canParse(text) && /^https?:$/.test(new URL(text).protocol);
}
