import { UserError } from "../../base/errors.ts";
import type { CallbackAddress } from "./oauth-callback.ts";
import type { OAuthSettings, RemoteServer } from "../server-settings.ts";

/** Default timeout of an authorization request, in milliseconds. */
const requestTimeoutMs = 15_000;

const callbackPath = "/mcp/callback";

/** Returns undefined if OAuth is disabled or a configured header authorizes the requests. */
export function getOAuthSettings({ oauth, headers }: RemoteServer): OAuthSettings | undefined {
  if (oauth === false) return undefined;
  const hasOwn = Object.keys(headers).some((name) => name.toLowerCase() === "authorization");
  return hasOwn ? undefined : (oauth ?? {});
}

export function clientIdOf(server: RemoteServer): string | undefined {
  return getOAuthSettings(server)?.clientId;
}

export function timeoutOf({ timeoutMs }: RemoteServer): number {
  return timeoutMs ?? requestTimeoutMs;
}

/** Returns the redirect address: the configured one, the last one, or any free port. */
export function getCallbackPlace(config: OAuthSettings, known: string | undefined): CallbackAddress {
  if (config.redirectUri !== undefined) return { ...parseLoopback(config.redirectUri), isFixed: true };
  const { callbackPort } = config;
  const base = { host: "127.0.0.1", path: callbackPath };
  if (callbackPort !== undefined) return { ...base, port: callbackPort, isFixed: true };
  return { ...base, port: Number(URL.parse(known ?? "")?.port ?? 0), isFixed: false };
}

const loopbackHosts: readonly string[] = ["127.0.0.1", "localhost", "[::1]"];

function parseLoopback(address: string): { host: string; port: number; path: string } {
  const url = URL.parse(address);
  if (
    url?.protocol !== "http:" ||
    !loopbackHosts.includes(url.hostname) ||
    url.port === "" ||
    url.search !== ""
  )
    throw new UserError(
      `"oauth.redirectUri" must lead to this computer with a port, such as http://127.0.0.1:3118/callback, not ${address}.`,
    );
  return { host: url.hostname, port: Number(url.port), path: url.pathname };
}
