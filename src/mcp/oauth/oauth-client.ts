import type {
  OAuthClientInformationMixed,
  OAuthClientMetadata,
  OAuthClientProvider,
  OAuthDiscoveryState,
  OAuthTokens,
} from "@modelcontextprotocol/client";
import { UserError } from "../../base/errors.ts";
import { checkEndpoint, hostOf } from "./oauth-requests.ts";
import { getOAuthSettings } from "./oauth-settings.ts";
import type { AuthorizationStore, OAuthClient, StoredAuthorization } from "./oauth-store.ts";
import { computeExpiry } from "./oauth-tokens.ts";
import type { RemoteServer } from "../server-settings.ts";

export interface OAuthFlowOptions {
  readonly server: RemoteServer;
  readonly store: AuthorizationStore;
  readonly redirectUrl: string;
  readonly state: string;
  /** Stored entry. Its registration is reused if it fits. */
  readonly stored: StoredAuthorization | undefined;
}

/** OAuth client provider of the SDK for one authorization. */
export class OAuthFlowClient implements OAuthClientProvider {
  readonly redirectUrl: string;
  readonly #options: OAuthFlowOptions;
  #client: OAuthClientInformationMixed | undefined;
  #discovered: OAuthDiscoveryState | undefined;
  #verifier: string | undefined;
  #address: URL | undefined;

  constructor(options: OAuthFlowOptions) {
    this.#options = options;
    this.redirectUrl = options.redirectUrl;
    this.#client = configuredClient(options.server) ?? reusableClient(options);
  }

  /** Address of the document that describes this program, instead of a registration. */
  get clientMetadataUrl(): string | undefined {
    return getOAuthSettings(this.#options.server)?.clientMetadataUrl;
  }

  /** The authorization URL for the user. */
  get address(): URL {
    if (this.#address === undefined) throw new Error("the authorization has no address yet");
    return this.#address;
  }

  get clientMetadata(): OAuthClientMetadata {
    const supported = this.#discovered?.authorizationServerMetadata?.token_endpoint_auth_methods_supported;
    return {
      client_name: "Fairlead",
      redirect_uris: [this.redirectUrl],
      grant_types: ["authorization_code", "refresh_token"],
      response_types: ["code"],
      token_endpoint_auth_method: authMethodFor(supported),
    };
  }

  state(): string {
    return this.#options.state;
  }

  clientInformation(): OAuthClientInformationMixed | undefined {
    return this.#client;
  }

  /** Stores the registration. If there are tokens of an earlier one, it is stored with the new tokens. */
  async saveClientInformation(client: OAuthClientInformationMixed): Promise<void> {
    this.#client = client;
    const { store, server, redirectUrl, stored } = this.#options;
    if (stored?.tokens === undefined) await store.save(server.url, { client, redirectUrl });
  }

  /** Returns undefined: stored tokens are refreshed elsewhere, and this flow always asks the user. */
  tokens(): undefined {
    return undefined;
  }

  async saveTokens(tokens: OAuthTokens): Promise<void> {
    const { store, server, redirectUrl } = this.#options;
    await store.save(server.url, {
      client: this.#client,
      redirectUrl,
      tokens,
      expiresAt: computeExpiry(tokens),
      resource: this.#discovered?.resourceMetadata?.resource,
    });
  }

  redirectToAuthorization(address: URL): void {
    this.#address = address;
  }

  saveCodeVerifier(verifier: string): void {
    this.#verifier = verifier;
  }

  codeVerifier(): string {
    if (this.#verifier === undefined) throw new Error("the authorization was not begun");
    return this.#verifier;
  }

  /** Discovers once, so that the code goes to the authorization server that the user visited. */
  saveDiscoveryState(found: OAuthDiscoveryState): void {
    const { server } = this.#options;
    const { authorizationServerUrl, authorizationServerMetadata: metadata } = found;
    checkEndpoint(server.url, authorizationServerUrl);
    checkIssuer(authorizationServerUrl, metadata?.issuer);
    const endpoints = [
      metadata?.authorization_endpoint,
      metadata?.token_endpoint,
      metadata?.registration_endpoint,
    ];
    for (const endpoint of endpoints) if (endpoint !== undefined) checkEndpoint(server.url, endpoint);
    const acceptsDocument =
      this.clientMetadataUrl !== undefined && metadata?.client_id_metadata_document_supported === true;
    const canRegister = acceptsDocument || metadata?.registration_endpoint !== undefined;
    if (metadata && !canRegister && this.#client === undefined)
      throw new UserError(
        `${hostOf(authorizationServerUrl)} does not let programs register themselves. Register one there by hand and set "oauth.clientId" of the server "${server.name}".`,
      );
    this.#discovered = found;
  }

  discoveryState(): OAuthDiscoveryState | undefined {
    return this.#discovered;
  }
}

/** Throws if the metadata names another authorization server (RFC 8414). A final slash makes no difference. */
function checkIssuer(authorizationServerUrl: string, issuer: string | undefined): void {
  const normalize = (url: string) => url.replace(/\/$/, "");
  if (issuer === undefined || normalize(issuer) === normalize(authorizationServerUrl)) return;
  throw new UserError(
    `${hostOf(authorizationServerUrl)} calls itself ${issuer.slice(0, 200)} in its metadata. Nothing was sent there; the server's operator must fix it.`,
  );
}

function configuredClient(server: RemoteServer): OAuthClientInformationMixed | undefined {
  const { clientId, clientSecret } = getOAuthSettings(server) ?? {};
  if (clientId === undefined) return undefined;
  return { client_id: clientId, ...(clientSecret !== undefined && { client_secret: clientSecret }) };
}

/** Returns whether the registration has this redirect URI and has not expired. */
function reusableClient({ stored, redirectUrl }: OAuthFlowOptions): OAuthClient | undefined {
  const { client } = stored ?? {};
  if (client === undefined || stored?.redirectUrl !== redirectUrl) return undefined;
  const expiry = (client.client_secret_expires_at ?? 0) * 1000;
  return expiry === 0 || expiry > Date.now() ? client : undefined;
}

/** Chooses the client authentication: none if supported, as a local program cannot keep a secret. */
function authMethodFor(supported: readonly string[] | undefined): string {
  if (supported === undefined || supported.includes("none")) return "none";
  return supported.includes("client_secret_post") ? "client_secret_post" : "client_secret_basic";
}
