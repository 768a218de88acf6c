import type { AgentApp, AuthStatusResponse, ProviderInfo } from "@agentclientprotocol/sdk/unstable";
import { authRequired, invalidParams } from "./errors.ts";
import { authMethodId, setupMethodId } from "./initialize.ts";

/** The person's providers and keys. */
export interface Account {
  /** Why no model can be asked, in words for the person; undefined when one can. */
  missingModel(): Promise<string | undefined>;
  /** The providers that can be asked now. */
  providers(): Promise<readonly { id: string; name: string; baseURL: string; keyFrom: string | undefined }[]>;
  /** Takes every stored key away. */
  forgetKeys(): Promise<void>;
  /** Sends a provider's requests somewhere else, with these headers and no key of ours, until the process ends. */
  route(id: string, route: { baseURL: string; headers: Record<string, string> }): Promise<void>;
  /** Does not use a provider any more until the process ends. */
  disable(id: string): Promise<void>;
}

/** The one protocol that is spoken with providers. */
const apiType = "openai";

/** Signing in and out, and where requests to models go. */
export function accountHandlers(app: AgentApp, { account }: { account: Account }): void {
  app.onRequest("authenticate", async ({ params }) => {
    await authenticate(account, params.methodId);
    return {};
  });

  app.onRequest("logout", async () => {
    await account.forgetKeys();
    return {};
  });

  app.onRequest("auth/status", () => authStatus(account));

  app.onRequest("providers/list", async () => ({
    providers: (await account.providers()).map(({ id, baseURL }): ProviderInfo => ({
      providerId: id,
      supported: [apiType],
      required: false,
      current: { apiType, baseUrl: baseURL },
    })),
  }));

  app.onRequest("providers/set", async ({ params }) => {
    if (params.apiType !== apiType)
      throw invalidParams(`The API "${params.apiType}" is not spoken. Use "${apiType}".`);
    if (!isWebAddress(params.baseUrl))
      throw invalidParams(`baseUrl must be an http or https address, not "${params.baseUrl}".`);
    await account.route(params.providerId, { baseURL: params.baseUrl, headers: params.headers ?? {} });
    return {};
  });

  app.onRequest("providers/disable", async ({ params }) => {
    await account.disable(params.providerId);
    return {};
  });
}

/** Succeeds at once where a model can be asked; throws what is missing otherwise. */
export async function authenticate(account: Account, methodId: string): Promise<void> {
  if (methodId !== authMethodId && methodId !== setupMethodId)
    throw invalidParams(`There is no authentication method "${methodId}".`);
  const problem = await account.missingModel();
  if (problem !== undefined) throw authRequired(problem);
}

async function authStatus(account: Account): Promise<AuthStatusResponse> {
  const [problem, providers] = await Promise.all([account.missingModel(), account.providers()]);
  return {
    state: problem === undefined ? "authenticated" : "unauthenticated",
    accounts: providers.map(({ name, keyFrom }) => ({
      label: keyFrom === undefined ? name : `${name} (key from ${keyFrom})`,
    })),
  };
}

function isWebAddress(text: string): boolean {
  return URL.canParse(text) && /^https?:$/.test(new URL(text).protocol);
}
