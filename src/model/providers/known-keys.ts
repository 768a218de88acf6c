import type { Env } from "../../config/paths.ts";
import type { Config } from "../../config/schema.ts";
import { keyVariables } from "../catalog/catalog.ts";
import type { Credentials } from "../keys/credentials.ts";

/** Collects all keys of providers and servers from the configuration, the environment and the stored credentials. */
export function collectKeys(config: Config, env: Env, credentials: Credentials): string[] {
  const providers = Object.values(config.provider ?? {});
  const variables = [...keyVariables, ...providers.flatMap((provider) => provider.env ?? [])];
  const servers = Object.values(config.mcp ?? {}).flatMap((server) =>
    "url" in server ? Object.values(server.headers ?? {}) : [],
  );
  const clients = Object.values(config.mcp ?? {}).flatMap((server) =>
    "url" in server && server.oauth ? [server.oauth.clientSecret] : [],
  );
  const searches = [config.search?.web, config.search?.code].flatMap((endpoint) =>
    Object.entries(endpoint?.headers ?? {}).flatMap(([name, value]) => (isForKeys(name) ? [value] : [])),
  );
  const keys = [
    ...providers.map(({ options }) => options?.apiKey),
    ...providers.flatMap(({ options }) => Object.values(options?.headers ?? {}).map(removeScheme)),
    ...servers.map(removeScheme),
    ...clients,
    ...searches.map(removeScheme),
    ...Object.values(credentials).map(({ apiKey }) => apiKey),
    ...variables.map((name) => env[name]),
  ];
  return keys.flatMap((key) => (key ? [key] : []));
}

function isForKeys(header: string): boolean {
  return /auth|key|token|secret/i.test(header);
}

/** `Bearer abc` is the key `abc`. */
function removeScheme(header: string): string {
  return header.replace(/^\w+ /, "");
}
