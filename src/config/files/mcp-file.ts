import { basename, dirname } from "node:path";
import { isRecord } from "../../base/text/record.ts";

/** Project files of other programs with MCP servers, lowest precedence first. */
export const mcpFileNames: readonly string[] = [".vscode/mcp.json", ".cursor/mcp.json", ".mcp.json"];

/** Returns whether the file lists MCP servers in the format of other programs. */
export function isMcpFile(path: string): boolean {
  const name = basename(path);
  return name === ".mcp.json" || mcpFileNames.includes(`${basename(dirname(path))}/${name}`);
}

/** Converts a file of another program to a configuration. Everything but its servers is omitted. */
export function fromMcpFile(value: unknown): unknown {
  if (!isRecord(value)) return {};
  const servers = value["mcpServers"] ?? value["servers"];
  if (!isRecord(servers)) return {};
  const mcp = Object.entries(servers).map(([name, server]) => [name, toServer(server)]);
  return { mcp: Object.fromEntries(mcp) };
}

/** Converts a server. Its variables are written `${NAME}` or `${NAME:-default}` there. */
function toServer(server: unknown): unknown {
  if (!isRecord(server)) return server;
  const { command, args = [], env, cwd, url, headers, disabled, timeout } = server;
  const shared = { ...(disabled === true && { enabled: false }), ...(timeout !== undefined && { timeout }) };
  const converted =
    url === undefined
      ? { type: "local", command: [command, ...toList(args)], cwd, environment: env, ...shared }
      : { type: "remote", url, headers, ...shared };
  return replaceVariables(omitUndefined(converted));
}

function toList(args: unknown): readonly unknown[] {
  return Array.isArray(args) ? args : [args];
}

function omitUndefined(record: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(record).filter(([, value]) => value !== undefined));
}

function replaceVariables(value: unknown): unknown {
  if (typeof value === "string") return value.replaceAll(/\$\{(?:env:)?(\w+(?::-[^{}]*)?)\}/g, "{env:$1}");
  if (Array.isArray(value)) return value.map(replaceVariables);
  if (!isRecord(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, replaceVariables(inner)]));
}
