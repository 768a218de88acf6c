import { orWhenAborted } from "../base/async.ts";
import type { McpServer } from "../mcp/server.ts";
import type { ListedServer } from "../mcp/session-servers.ts";

/** The parts of a session that the command uses. */
export interface McpCommandContext {
  readonly servers: McpServers;
  /** Returns whether the conversation loads tools of servers on demand. */
  loadsToolsOnDemand(): Promise<boolean>;
}

/** The MCP servers of a session. */
interface McpServers {
  list(): readonly ListedServer[];
  authorize(server: McpServer, signal: AbortSignal): Promise<string>;
}

/** Maximum number of listed tools, prompts or resources of a server. */
const listedLimit = 100;
const descriptionLimit = 120;

/** `/mcp`, `/mcp <server>`, `/mcp reconnect [<server>]` and `/mcp auth <server>`. */
export async function runMcp(session: McpCommandContext, rest: string, signal: AbortSignal): Promise<string> {
  const { servers } = session;
  const [word = "", ...more] = rest.split(/\s+/).filter((part) => part !== "");
  const list = servers.list();
  if (word === "reconnect") return reconnect(list, more.join(" "), signal);
  if (word === "auth") return authorize(servers, more.join(" "), signal);
  const isOnDemand = await session.loadsToolsOnDemand();
  if (word === "") return describeAll(list, isOnDemand);
  const listed = list.find(({ name }) => name === rest.trim());
  return listed === undefined ? unknown(rest.trim(), list) : describeOne(listed, isOnDemand);
}

function describeAll(list: readonly ListedServer[], isOnDemand: boolean): string {
  if (list.length === 0)
    return "No MCP servers. Configure them under `mcp` in fairlead.json or in the editor.";
  const lines = list.map((listed) => `- **${listed.name}**: ${stateOf(listed, isOnDemand)}`);
  return [
    ...lines,
    "",
    "`/mcp <server>` shows what a server offers, `/mcp reconnect <server>` reconnects it.",
  ].join("\n");
}

function stateOf({ server, name }: ListedServer, isOnDemand = false): string {
  if (server === undefined) return "disabled in the configuration";
  const { status, offers } = server;
  switch (status.state) {
    case "waiting":
      return "not started yet";
    case "connecting":
      return "connecting";
    case "connected":
      return `connected; ${counts(offers, isOnDemand)}`;
    case "failed":
      return `failed: ${status.reason}${status.isPassing ? "; retrying" : ""}`;
    case "needs authorization":
      return `needs authorization: \`/mcp auth ${name}\``;
    case "ended":
      return "ended";
  }
}

type Offers = NonNullable<ListedServer["server"]>["offers"];

function counts({ tools, prompts, resources, templates, notes }: Offers, isOnDemand: boolean): string {
  const count = (number: number, one: string) => `${number} ${one}${number === 1 ? "" : "s"}`;
  return [
    count(tools.length, "tool") + (isOnDemand && tools.length > 0 ? " (loaded on demand)" : ""),
    ...(prompts.length > 0 ? [count(prompts.length, "prompt")] : []),
    ...(resources.length > 0 ? [count(resources.length, "resource")] : []),
    ...(templates.length > 0 ? [count(templates.length, "resource template")] : []),
    ...(notes.length > 0 ? [count(notes.length, "note")] : []),
  ].join(", ");
}

function describeOne(listed: ListedServer, isOnDemand: boolean): string {
  const head = `**${listed.name}**: ${stateOf(listed, isOnDemand)}`;
  if (listed.server === undefined) return head;
  const { offers, logLines, noise, protocolVersion } = listed.server;
  const { tools, prompts, resources, templates, notes } = offers;
  return [
    head,
    `\`${listed.location}\``,
    ...(protocolVersion === undefined ? [] : [`Protocol ${protocolVersion}`]),
    ...section("Tools", tools.map(lineOf)),
    ...section("Prompts", prompts.map(lineOf)),
    ...section("Resources", [
      ...resources.map(({ uri, name }) => `${uri} (${name})`),
      ...templates.map(({ uriTemplate, name }) => `${uriTemplate} (${name})`),
    ]),
    ...section("Notes", [...notes, ...(noise > 0 ? [`${noise} invalid lines in its output`] : [])]),
    ...section(
      "Last log lines",
      logLines.map((line) => `\`${line.replaceAll("`", "'").replaceAll(/\s+/g, " ")}\``),
    ),
  ].join("\n");
}

function section(title: string, items: readonly string[]): string[] {
  if (items.length === 0) return [];
  const rest = items.length - listedLimit;
  const lines = items.slice(0, listedLimit).map((item) => `- ${item}`);
  return ["", `${title}:`, "", ...lines, ...(rest > 0 ? [`- and ${rest} more`] : [])];
}

function lineOf({ name, description }: { name: string; description: string }): string {
  const line = description.replaceAll(/\s+/g, " ").trim();
  if (line === "") return `\`${name}\``;
  return `\`${name}\`: ${line.length > descriptionLimit ? `${line.slice(0, descriptionLimit)}…` : line}`;
}

/**
 * Reconnects servers and waits for the result, bounded by the server's timeout. A cancel does not stop the
 * reconnection.
 */
async function reconnect(list: readonly ListedServer[], name: string, signal: AbortSignal): Promise<string> {
  const wanted = name === "" ? list : list.filter((listed) => listed.name === name);
  if (wanted.length === 0) return unknown(name, list);
  const reconnected = Promise.all(wanted.map(async ({ server }) => server?.reconnect()));
  await orWhenAborted(reconnected, signal, undefined);
  return wanted.map((listed) => `- **${listed.name}**: ${stateOf(listed)}`).join("\n");
}

async function authorize(servers: McpServers, name: string, signal: AbortSignal): Promise<string> {
  const list = servers.list();
  const listed = list.find((one) => one.name === name);
  if (listed === undefined) return unknown(name, list);
  if (listed.server === undefined) return `The MCP server "${name}" is disabled in the configuration.`;
  return servers.authorize(listed.server, signal);
}

function unknown(name: string, list: readonly ListedServer[]): string {
  const names = list.map((listed) => listed.name).join(", ");
  return list.length === 0 ? "No MCP servers." : `MCP server "${name}" not found. Servers: ${names}.`;
}
