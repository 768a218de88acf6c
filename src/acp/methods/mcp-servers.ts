import type { McpServer } from "@agentclientprotocol/sdk/unstable";
import type { GivenServers, ServerSettings } from "../../mcp/server-settings.ts";

/** Converts the client's MCP servers for the engine. */
export function toServers(given: readonly McpServer[]): GivenServers {
  const servers = given.map((server) => toServer(server) ?? server.name);
  return {
    servers: servers.filter((server) => typeof server !== "string"),
    problems: servers
      .filter((server) => typeof server === "string")
      .map(
        (name) =>
          `The editor uses an unsupported transport for the MCP server "${name}"; the server is not used.`,
      ),
  };
}

function toServer(server: McpServer): ServerSettings | undefined {
  const { name } = server;
  if (!("type" in server)) {
    const { command, args, env } = server;
    return { type: "local", name, command, args, environment: valuesByName(env) };
  }
  if (server.type !== "http" && server.type !== "sse") return undefined;
  const { type: transport, url, headers } = server;
  return { type: "remote", name, url, headers: valuesByName(headers), transport };
}

function valuesByName(entries: readonly { name: string; value: string }[]): Record<string, string> {
  return Object.fromEntries(entries.map(({ name, value }) => [name, value]));
}
