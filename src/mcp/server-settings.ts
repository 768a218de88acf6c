import { resolve } from "node:path";
import { sha256 } from "../base/text/hash.ts";
import { removeSecretForms } from "../base/secrets/secret-forms.ts";
import type { Config } from "../config/schema.ts";
import type { ProgramSandbox } from "../sandbox/project-sandbox.ts";
import { isCredential } from "../workspace/process/environment.ts";

/** Settings of a server from the configuration or the editor. */
export type ServerSettings = LocalServer | RemoteServer;

interface Common {
  /** As the user wrote it. */
  readonly name: string;
  /** Timeouts for connecting and for each call; undefined means the defaults. */
  readonly timeoutMs?: number | undefined;
  /** Whether it receives the session's folders; undefined decides by its command line. */
  readonly roots?: boolean | undefined;
}

export interface LocalServer extends Common {
  readonly type: "local";
  readonly command: string;
  readonly args: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
  /** Absolute path; undefined means the session's folder. */
  readonly cwd?: string | undefined;
  /** It runs in the sandbox of the system. */
  readonly sandbox?: ProgramSandbox | undefined;
}

export interface RemoteServer extends Common {
  readonly type: "remote";
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  /** The transport, if known. Otherwise StreamableHTTP is tried first, then SSE. */
  readonly transport?: "http" | "sse" | undefined;
  /** OAuth client settings; false disables authorization. */
  readonly oauth?: OAuthSettings | false | undefined;
}

export interface OAuthSettings {
  readonly clientId?: string | undefined;
  readonly clientSecret?: string | undefined;
  readonly scope?: string | undefined;
  /** The full redirect URI, for manually registered clients. */
  readonly redirectUri?: string | undefined;
  readonly callbackPort?: number | undefined;
  /** Address of a document that describes this program, for authorization servers that accept it as the client's id. */
  readonly clientMetadataUrl?: string | undefined;
}

/** Servers that the editor passes with a session. */
export interface GivenServers {
  readonly servers: readonly ServerSettings[];
  /** Entries that cannot be used, as messages for the user. */
  readonly problems: readonly string[];
}

export const noGivenServers: GivenServers = { servers: [], problems: [] };

/** The servers of one session. */
export interface ServerList {
  readonly servers: readonly ServerSettings[];
  /** Names of disabled servers. */
  readonly disabled: readonly string[];
  /** Configuration problems, as messages for the user. */
  readonly problems: readonly string[];
}

/** Maximum number of servers per session. */
const serversLimit = 64;

/** Merges the configured servers with the editor's. For equal names the editor's takes precedence. */
export function createServerList(
  config: Pick<Config, "mcp" | "experimental">,
  given: GivenServers,
  cwd: string,
): ServerList {
  const configured = fromConfig(config, cwd);
  const names = new Set(given.servers.map(({ name }) => name));
  const own = configured.servers.filter(({ name }) => !names.has(name));
  const replaced = configured.servers.filter(({ name }) => names.has(name));
  const servers = [...own, ...distinct(given.servers)];
  const left = servers.slice(serversLimit);
  return {
    servers: servers.slice(0, serversLimit),
    disabled: configured.disabled,
    problems: [
      ...configured.problems,
      ...given.problems,
      ...[...findDuplicates(given.servers)].map(
        (name) => `The editor gives several MCP servers the name "${name}"; the last of them is used.`,
      ),
      ...replaced.map(
        ({ name }) => `mcp.${name}: the editor gives a server of this name, which is used instead`,
      ),
      ...(left.length > 0
        ? [
            `${servers.length} MCP servers are too many; these are not used: ${left.map(({ name }) => name).join(", ")}`,
          ]
        : []),
    ],
  };
}

function fromConfig({ mcp = {}, experimental }: Pick<Config, "mcp" | "experimental">, cwd: string) {
  const list = { servers: [] as ServerSettings[], disabled: [] as string[], problems: [] as string[] };
  for (const [name, server] of Object.entries(mcp)) {
    if (server.enabled === false) list.disabled.push(name);
    else if (!("type" in server)) list.problems.push(`mcp.${name}: it is enabled, but no file defines it`);
    else if (server.type === "remote" && server.sandbox)
      list.problems.push(
        `mcp.${name}: not used: a remote server does not run in this computer's sandbox; remove "sandbox" from its entry`,
      );
    else {
      const timeoutMs = server.timeout ?? experimental?.mcp_timeout;
      list.servers.push(toSettings(name, { ...server, timeout: timeoutMs }, cwd));
    }
  }
  return list;
}

type ConfiguredServer = Extract<NonNullable<Config["mcp"]>[string], { type: string }>;

function toSettings(name: string, server: ConfiguredServer, cwd: string): ServerSettings {
  const { timeout: timeoutMs, roots } = server;
  if (server.type === "remote") {
    const { url, headers = {}, oauth } = server;
    return { type: "remote", name, url, headers, oauth, timeoutMs, roots };
  }
  const [command = "", ...args] = server.command;
  const folder = server.cwd === undefined ? undefined : resolve(cwd, server.cwd);
  return {
    type: "local",
    name,
    command,
    args,
    environment: server.environment ?? {},
    cwd: folder,
    sandbox: server.sandbox,
    timeoutMs,
    roots,
  };
}

function findDuplicates(servers: readonly ServerSettings[]): Set<string> {
  const names = servers.map(({ name }) => name);
  return new Set(names.filter((name, index) => names.indexOf(name) !== index));
}

function distinct(servers: readonly ServerSettings[]): ServerSettings[] {
  return [...new Map(servers.map((server) => [server.name, server])).values()];
}

/** Collects the secrets of the settings: keys in headers and variables. */
export function listSecrets(servers: readonly ServerSettings[]): string[] {
  return servers.flatMap((settings) => {
    if (settings.type === "local")
      return Object.entries(settings.environment).flatMap(([name, value]) =>
        isCredential(name, value) ? [value] : [],
      );
    const { headers, oauth } = settings;
    const keys = Object.entries(headers).filter(([name]) => /auth|key|token|secret|cookie/i.test(name));
    const values = keys.map(([, value]) => value.replace(/^(?:Bearer|Basic) /i, ""));
    return oauth && oauth.clientSecret !== undefined ? [...values, oauth.clientSecret] : values;
  });
}

/** Returns an id that is equal for servers that sessions can share. Contains headers and variables only as a hash. */
export function getIdentity(settings: ServerSettings, roots: readonly string[]): string {
  return sha256(JSON.stringify([settings, roots]));
}

/** Describes the server for display, without secrets. */
export function describeSettings(settings: ServerSettings): string {
  if (settings.type === "local") return removeSecretForms([settings.command, ...settings.args].join(" "));
  if (!URL.canParse(settings.url)) return settings.url;
  const { protocol, host, pathname } = new URL(settings.url);
  return `${protocol}//${host}${pathname}`;
}
