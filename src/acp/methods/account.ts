import type { ProviderInfo } from "@agentclientprotocol/sdk/unstable";
import { authRequired, invalidParams } from "../errors.ts";
import { authMethodId, setupMethodId } from "../initialize.ts";

/** The person's providers and keys. */
export interface Account {
  /** Why no model can be asked, in words for the person; undefined when one can. */
  missingModel(): Promise<string | undefined>;
  /** The providers that can be asked now. */
  providers(): Promise<readonly { id: string; name: string; baseURL: string; keyFrom: string | undefined }[]>;
  /** Takes every stored key away. */
  removeKeys(): Promise<void>;
  /** Sends a provider's requests somewhere else, with these headers and no key of ours, until the process ends. */
  route(id: string, route: { baseURL: string; headers: Record<string, string> }): Promise<void>;
  /** Does not use a provider any more until the process ends. */
  disable(id: string): Promise<void>;
}

/** The one protocol that is spoken with providers. */
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
    throw invalidParams(`The API "${params.apiType}" is not spoken. Use "${apiType}".`);
  if (!isWebAddress(params.baseUrl))
    throw invalidParams(`baseUrl must be an http or https address, not "${params.baseUrl}".`);
  await account.route(params.providerId, { baseURL: params.baseUrl, headers: params.headers ?? {} });
  return {};
}

export async function disableProvider(account: Account, id: string): Promise<Record<string, never>> {
  await account.disable(id);
  return {};
}

/** Succeeds at once where a model can be asked; throws what is missing otherwise. */
export async function authenticate(account: Account, methodId: string): Promise<Record<string, never>> {
  if (methodId !== authMethodId && methodId !== setupMethodId)
    throw invalidParams(`There is no authentication method "${methodId}".`);
  const problem = await account.missingModel();
  if (problem !== undefined) throw authRequired(problem);
  return {};
}

function isWebAddress(text: string): boolean {
  return URL.canParse(text) && /^https?:$/.test(new URL(text).protocol);
}
