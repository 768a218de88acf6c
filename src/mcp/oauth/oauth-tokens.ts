import {
  discoverAuthorizationServerMetadata,
  extractWWWAuthenticateParams,
  type FetchLike,
  OAuthError,
  OAuthErrorCode,
  refreshAuthorization,
} from "@modelcontextprotocol/client";
import { messageOf, UserError } from "../../base/errors.ts";
import { AuthorizationNeeded, type Challenge } from "./oauth-challenge.ts";
import { clientIdOf, getOAuthSettings, timeoutOf } from "./oauth-settings.ts";
import { checkEndpoint, isSameOrigin, createOAuthFetch, createServerFetch } from "./oauth-requests.ts";
import type { AuthorizationStore, StoredAuthorization } from "./oauth-store.ts";
import type { RemoteServer } from "../server-settings.ts";

export interface ServerTokensDeps {
  readonly store: AuthorizationStore;
  readonly fetch: FetchLike;
}

type StoredTokens = NonNullable<StoredAuthorization["tokens"]>;

/**
 * Authorizes requests to one remote server: sends the token to the server's origin only, refreshes it when it has expired
 * or is rejected, and signals when the user must authorize again.
 */
export class ServerTokens {
  readonly #server: RemoteServer;
  readonly #store: AuthorizationStore;
  readonly #send: FetchLike;
  #renewing: Promise<string | undefined> | undefined;

  constructor(server: RemoteServer, { store, fetch }: ServerTokensDeps) {
    this.#server = server;
    this.#store = store;
    this.#send = createServerFetch(fetch, server);
  }

  /** Fetch for a transport. Throws {@link AuthorizationNeeded} if no token helps. */
  readonly fetch: FetchLike = async (url, init) => {
    if (getOAuthSettings(this.#server) === undefined || !isSameOrigin(this.#server.url, url))
      return this.#send(url, init);
    const token = await this.#currentToken();
    const response = await this.#sendWith(token, url, init);
    if (response.status === 401) return this.#again(token, response, url, init);
    this.#checkScope(response);
    return response;
  };

  /** Returns the stored token, refreshed if it has expired. */
  async #currentToken(): Promise<string | undefined> {
    const stored = await this.#load();
    const token = stored?.tokens?.access_token;
    if (token === undefined) return undefined;
    const hasRunOut = stored?.expiresAt !== undefined && stored.expiresAt <= Date.now();
    return hasRunOut ? this.#renew(token) : token;
  }

  #sendWith(token: string | undefined, url: string | URL, init: RequestInit | undefined): Promise<Response> {
    if (token === undefined) return this.#send(url, init);
    const headers = new Headers(init?.headers);
    headers.set("authorization", `Bearer ${token}`);
    return this.#send(url, { ...init, headers });
  }

  async #again(
    token: string | undefined,
    refused: Response,
    url: string | URL,
    init: RequestInit | undefined,
  ): Promise<Response> {
    const challenge = challengeOf(refused);
    await refused.body?.cancel();
    const renewed = token === undefined ? undefined : await this.#renew(token);
    if (renewed === undefined) throw this.#needed(challenge);
    const response = await this.#sendWith(renewed, url, init);
    if (response.status !== 401) return response;
    await response.body?.cancel();
    throw this.#needed(challengeOf(response));
  }

  #checkScope(response: Response): void {
    if (response.status !== 403 || extractWWWAuthenticateParams(response).error !== "insufficient_scope")
      return;
    throw this.#needed(challengeOf(response));
  }

  #needed(challenge: Challenge): AuthorizationNeeded {
    return new AuthorizationNeeded(this.#server.name, challenge);
  }

  /** Shares one refresh between requests that are rejected at the same time. */
  #renew(refused: string): Promise<string | undefined> {
    this.#renewing ??= this.#store
      .exclusively(this.#server.url, () => this.#renewAlone(refused))
      .finally(() => (this.#renewing = undefined));
    return this.#renewing;
  }

  /** Returns undefined if the user must authorize again. Throws if a retry may help; the tokens remain stored. */
  async #renewAlone(refused: string): Promise<string | undefined> {
    const stored = await this.#load();
    const { tokens } = stored ?? {};
    // Another process has refreshed it.
    if (tokens !== undefined && tokens.access_token !== refused) return tokens.access_token;
    if (stored === undefined) return undefined;
    try {
      const fresh = await this.#refresh(stored);
      if (fresh === undefined) return undefined;
      await this.#store.save(this.#server.url, { tokens: fresh, expiresAt: computeExpiry(fresh) });
      return fresh.access_token;
    } catch (thrown) {
      if (isOAuthError(thrown, [OAuthErrorCode.InvalidGrant]) || isUnknownClient(thrown))
        return this.#drop(thrown);
      if (thrown instanceof UserError) throw thrown;
      throw new UserError(
        `The authorization of the MCP server "${this.#server.name}" could not be renewed: ${messageOf(thrown).slice(0, 300)}`,
        { cause: thrown },
      );
    }
  }

  /** Refreshes at the authorization server that issued the token, even if the server now names another one. */
  async #refresh({ client, tokens, resource }: StoredAuthorization): Promise<StoredTokens | undefined> {
    const { url } = this.#server;
    const { refresh_token: refreshToken, issuer } = tokens ?? {};
    if (client === undefined || refreshToken === undefined || issuer === undefined) return undefined;
    const fetchFn = createOAuthFetch(this.#send, { timeoutMs: timeoutOf(this.#server) });
    const metadata = await discoverAuthorizationServerMetadata(issuer, { fetchFn });
    checkEndpoint(url, metadata?.token_endpoint ?? issuer);
    const fresh = await refreshAuthorization(issuer, {
      metadata,
      clientInformation: client,
      refreshToken,
      fetchFn,
      ...(resource !== undefined && { resource }),
    });
    return { ...fresh, issuer };
  }

  /** Deletes tokens or registrations that the authorization server no longer accepts. */
  async #drop(thrown: unknown): Promise<undefined> {
    const isClientGone = isUnknownClient(thrown);
    await this.#store.save(this.#server.url, {
      tokens: undefined,
      expiresAt: undefined,
      ...(isClientGone && { client: undefined, redirectUrl: undefined }),
    });
    return undefined;
  }

  async #load(): Promise<StoredAuthorization | undefined> {
    const stored = await this.#store.load(this.#server.url);
    const clientId = clientIdOf(this.#server);
    // Tokens of another client cannot be refreshed by the configured one.
    return clientId === undefined || stored?.client?.client_id === clientId ? stored : undefined;
  }
}

const expiryMarginMs = 5_000;

/** Returns the expiry of new tokens in milliseconds since 1970, with a safety margin. */
export function computeExpiry({
  expires_in: seconds,
}: {
  expires_in?: number | undefined;
}): number | undefined {
  return seconds === undefined ? undefined : Date.now() + seconds * 1000 - expiryMarginMs;
}

export function challengeOf(response: Response): Challenge {
  const { resourceMetadataUrl, scope } = extractWWWAuthenticateParams(response);
  return { resourceMetadataUrl, scope };
}

function isUnknownClient(thrown: unknown): boolean {
  return isOAuthError(thrown, [OAuthErrorCode.InvalidClient, OAuthErrorCode.UnauthorizedClient]);
}

function isOAuthError(thrown: unknown, codes: readonly string[]): boolean {
  return thrown instanceof OAuthError && codes.includes(thrown.code);
}
