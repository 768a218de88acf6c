import type { ProviderInfo } from "@agentclientprotocol/sdk/unstable";
import { authRequired, invalidParams } from "../errors.ts";
import { authMethodId, setupMethodId } from "../initialize.ts";

/** The user's providers and API keys. */
export interface Account {
  /** Returns a message for the user if no model is available; undefined otherwise. */
  missingModel(): Promise<string | undefined>;
  /** Returns the configured providers. */
  providers(): Promise<readonly { id: string; name: string; baseURL: string; keyFrom: string | undefined }[]>;
  /** Removes all stored API keys. */
  removeKeys(): Promise<void>;
  /** Redirects a provider's requests to another URL, with these headers and no stored key, until the process ends. */
  route(id: string, route: { baseURL: string; headers: Record<string, string> }): Promise<void>;
  /** Disables a provider until the process ends. */
  disable(id: string): Promise<void>;
}

/** The only supported provider API. */
const apiType = "openai";

export async function logOut(account: Account): Promise<Record<string, never>> {
  await account.removeKeys();
  return {};
}

export async function listProviders(account: Account): Promise<{ providers: ProviderInfo[] }> {
  const providers = await account.providers();
  return {
    providers: providers.map(({ id, baseURL }) => ({
      providerId: id,
      supported: [apiType],
      required: false,
      current: { apiType, baseUrl: baseURL },
    })),
  };
}

export async function setProvider(
  account: Account,
  params: { providerId: string; apiType: string; baseUrl: string; headers?: Record<string, string> | null },
): Promise<Record<string, never>> {
  if (params.apiType !== apiType)
    throw invalidParams(`The API "${params.apiType}" is not supported. Use "${apiType}".`);
  if (!isWebAddress(params.baseUrl))
    throw invalidParams(`baseUrl must be an http or https URL, not "${params.baseUrl}".`);
  await account.route(params.providerId, { baseURL: params.baseUrl, headers: params.headers ?? {} });
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
