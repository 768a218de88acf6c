import {
  type FetchLike,
  SdkError,
  SdkErrorCode,
  SSEClientTransport,
  StreamableHTTPClientTransport,
} from "@modelcontextprotocol/client";
import { UserError } from "../../base/errors.ts";
import { limitResponseSize, type MessageTooLongError } from "./bounded-fetch.ts";
import { getHttpStatus } from "./failures.ts";
import type { RemoteServer } from "../server-settings.ts";
import type { OAuthFetch } from "../oauth/oauth-fetch.ts";

export type RemoteKind = "http" | "sse";

/** Delays before reconnecting a broken event stream. The server's `retry` takes precedence. */
const streamReconnection = {
  initialReconnectionDelay: 1_000,
  maxReconnectionDelay: 10_000,
  reconnectionDelayGrowFactor: 2,
  maxRetries: 3,
};

export interface RemoteDeps {
  /** Authenticated fetch. Without it, servers that require authorization cannot be used. */
  signIn?: OAuthFetch | undefined;
  /** Called when the server requires authorization. */
  onSignInNeeded(): void;
  onTooLong(error: MessageTooLongError): void;
}

export function remoteTransport(server: RemoteServer, kind: RemoteKind, deps: RemoteDeps) {
  const url = getUrl(server);
  const options = { requestInit: { headers: { ...server.headers } }, fetch: createFetch(server, kind, deps) };
  if (kind === "sse") return new SSEClientTransport(url, options);
  return new StreamableHTTPClientTransport(url, { ...options, reconnectionOptions: streamReconnection });
}

/** Returns the transports to try, in order. */
export function remoteKinds({ transport }: RemoteServer): readonly RemoteKind[] {
  return transport === undefined ? ["http", "sse"] : [transport];
}

/** Returns whether the server may only support the older transport. */
export function maySpeakSse(error: unknown): boolean {
  if (error instanceof SdkError && error.code === SdkErrorCode.ClientHttpUnexpectedContent) return true;
  const status = getHttpStatus(error) ?? 0;
  return status >= 400 && status < 500 && status !== 401 && status !== 403;
}

function createFetch(server: RemoteServer, kind: RemoteKind, deps: RemoteDeps): FetchLike {
  const { signIn } = deps;
  const bounded = limitResponseSize((error) => deps.onTooLong(error));
  if (signIn === undefined || server.oauth === false) return bounded;
  const signedIn = signIn.fetchFor(server, bounded);
  return async (url, init) => {
    try {
      return await signedIn(url, init);
    } catch (error) {
      // A server may reject the event stream and still answer requests.
      const isExtra = kind === "http" && init?.method === "GET";
      if (signIn.isNeeded(error) && !isExtra) deps.onSignInNeeded();
      throw error;
    }
  };
}

function getUrl({ url }: RemoteServer): URL {
  if (!URL.canParse(url)) throw new UserError(`"${url}" is not a URL; write a full one: https://host/path`);
  const parsed = new URL(url);
  if (parsed.protocol !== "https:" && parsed.protocol !== "http:")
    throw new UserError(`protocol "${parsed.protocol}" is not supported; use https:// or http://`);
  return parsed;
}
