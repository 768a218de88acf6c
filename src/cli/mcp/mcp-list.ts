import type { App } from "../../app.ts";
import { orAfter } from "../../base/async.ts";
import type { McpServer } from "../../mcp/server.ts";
import {
  describeSettings,
  noGivenServers,
  createServerList,
  type ServerSettings,
} from "../../mcp/server-settings.ts";
import { showInvisible } from "../../base/text/invisible.ts";
import type { Project } from "../../conversation/project.ts";
import { writeNotice } from "../terminal/output.ts";
import { type Style, styleFor } from "../terminal/style.ts";

/** A configured server and its state after the connection attempt. */
interface ServerRow {
  readonly name: string;
  readonly type: "local" | "remote";
  /** The command or the address, without secrets. */
  readonly where: string;
  readonly state: "connected" | "needs authorization" | "failed" | "disabled";
  /** Why it is not connected, or what to do. */
  readonly reason?: string;
  readonly tools: readonly string[];
  readonly prompts: readonly string[];
  readonly resources: readonly string[];
  /** Which of its tools, prompts and resources are omitted, and why. */
  readonly notes: readonly string[];
}

/** Time limit per server; all servers connect in parallel. */
const connectTimeoutMs = 20_000;

/** Connects to every configured server, prints their states, and stops them. */
export async function listServers(app: App, project: Project, isJson: boolean): Promise<void> {
  const { servers, disabled, problems } = getList(project);
  const connected = await connectAll(app, project, servers);
  const rows = [...connected, ...disabled.map((name) => disabledRow(project, name))];
  for (const problem of problems) writeNotice(showInvisible(problem));
  if (isJson) return print(JSON.stringify(rows, undefined, 2));
  if (rows.length === 0) print("No MCP servers are configured. To add one: fairlead mcp add --help");
  for (const line of toTable(rows, styleFor(process.stdout, process.env))) print(line);
}

/** Connects to one server, prints its state and tools, and stops it. Returns undefined if there is none of this name. */
export async function testServer(
  app: App,
  project: Project,
  name: string,
  isJson: boolean,
): Promise<boolean | undefined> {
  const wanted = getList(project).servers.filter((server) => server.name === name);
  const [row] = await connectAll(app, project, wanted);
  if (row === undefined) return undefined;
  if (isJson) print(JSON.stringify(row, undefined, 2));
  else {
    for (const line of toTable([row], styleFor(process.stdout, process.env))) print(line);
    for (const tool of row.tools) print(`  ${tool}`);
  }
  return row.state === "connected";
}

function getList({ config, workspace }: Project) {
  return createServerList(config, noGivenServers, workspace.cwd);
}

/** Connects to the servers at once, and stops them and the program. */
async function connectAll(
  app: App,
  { workspace: { roots } }: Project,
  settings: readonly ServerSettings[],
): Promise<ServerRow[]> {
  const servers = app.openServers({ elicitationAbilities: () => noElicitation, visited: () => {} });
  const user = {};
  const rows = await Promise.all(settings.map((each) => connect(servers.join(each, roots, user))));
  await app.close();
  return rows;
}

const noElicitation = { forms: false, urls: false };

async function connect(server: McpServer): Promise<ServerRow> {
  server.start();
  await orAfter(server.settled(), connectTimeoutMs, undefined);
  const { settings, offers } = server;
  return {
    ...describeBriefly(settings),
    ...getState(server),
    tools: offers.tools.map(({ name }) => name),
    prompts: offers.prompts.map(({ name }) => name),
    resources: [
      ...offers.resources.map(({ uri }) => uri),
      ...offers.templates.map(({ uriTemplate }) => uriTemplate),
    ],
    notes: offers.notes,
  };
}

function describeBriefly(settings: ServerSettings): Pick<ServerRow, "name" | "type" | "where"> {
  return { name: settings.name, type: settings.type, where: describeSettings(settings) };
}

function getState({ status, settings: { name } }: McpServer): Pick<ServerRow, "state" | "reason"> {
  switch (status.state) {
    case "connected":
      return { state: "connected" };
    case "needs authorization":
      return { state: "needs authorization", reason: `fairlead mcp auth ${name}` };
    case "failed":
      return { state: "failed", reason: status.reason };
    case "waiting":
    case "connecting":
    case "ended":
      return { state: "failed", reason: `it did not answer within ${connectTimeoutMs / 1000} s` };
  }
}

function disabledRow({ config }: Project, name: string): ServerRow {
  const server = config.mcp?.[name];
  const url = server !== undefined && "url" in server ? server.url : undefined;
  const type = url === undefined ? "local" : "remote";
  return {
    name,
    type,
    where: url ?? "",
    state: "disabled",
    tools: [],
    prompts: [],
    resources: [],
    notes: [],
  };
}

function toTable(rows: readonly ServerRow[], style: Style): string[] {
  const nameWidth = Math.max(0, ...rows.map(({ name }) => name.length));
  const stateWidth = Math.max(0, ...rows.map((row) => formatState(row).length));
  return rows.flatMap((row) => {
    const state = paintState(row, formatState(row).padEnd(stateWidth), style);
    const first = `${row.name.padEnd(nameWidth)}  ${state}  ${style.dim(row.where)}`;
    const below = [...(row.reason === undefined ? [] : [row.reason]), ...row.notes];
    return [first, ...below.map((text) => `${" ".repeat(nameWidth)}  ${style.yellow(text)}`)];
  });
}

function formatState({ state, tools }: ServerRow): string {
  if (state !== "connected") return state;
  return `connected, ${tools.length} ${tools.length === 1 ? "tool" : "tools"}`;
}

function paintState({ state }: ServerRow, text: string, style: Style): string {
  switch (state) {
    case "connected":
      return style.green(text);
    case "failed":
      return style.red(text);
    case "needs authorization":
      return style.yellow(text);
    case "disabled":
      return style.dim(text);
  }
}

function print(text: string): void {
  process.stdout.write(`${showInvisible(text)}\n`);
}
