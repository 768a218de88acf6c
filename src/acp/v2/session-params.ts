import { McpServer } from "@agentclientprotocol/sdk/experimental/v2/unstable";
import type * as draft from "@agentclientprotocol/sdk/experimental/v2/unstable";
import { type McpServer as StableMcpServer, RequestError } from "@agentclientprotocol/sdk/unstable";
import type { SessionParams } from "../methods/lifecycle.ts";

/** Converts the params of a request that opens a session to version 1. */
export function toSessionParams(params: draft.NewSessionRequest): SessionParams {
  const { cwd, additionalDirectories, mcpServers, systemPrompt, _meta } = params;
  return {
    cwd,
    ...(systemPrompt && { systemPrompt }),
    ...(_meta && { _meta }),
    ...(additionalDirectories && { additionalDirectories }),
    mcpServers: (mcpServers ?? []).flatMap(toStableServer),
  };
}

function toStableServer(server: draft.McpServer): StableMcpServer[] {
  if (McpServer.isHttp(server)) {
    const { name, url, headers = [] } = server;
    return [{ type: "http", name, url, headers }];
  }
  if (!McpServer.isStdio(server)) return [];
  const { name, command, args = [], env = [] } = server;
  return [{ name, command, args, env }];
}

/** Throws for a repeated name, and for a transport that `initialize` did not announce. */
export function checkServers(servers: readonly draft.McpServer[] = []): void {
  const names = new Set<unknown>();
  for (const server of servers) {
    const name = "name" in server ? server.name : undefined;
    if (typeof name === "string" && names.has(name))
      throw RequestError.invalidParams({ name }, `Duplicate MCP server name ${name}`);
    names.add(name);
    const { type } = server;
    if (!McpServer.isHttp(server) && !McpServer.isStdio(server))
      throw RequestError.invalidParams({ type }, `Unsupported MCP server transport ${type}`);
  }
}
