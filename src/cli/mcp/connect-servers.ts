import type { App } from "../../app.ts";
import { orAfter } from "../../base/async.ts";
import type { Project } from "../../conversation/project.ts";
import type { McpServer } from "../../mcp/server.ts";
import {
  describeSettings,
  noGivenServers,
  createServerList,
  type ServerSettings,
} from "../../mcp/server-settings.ts";

/** A configured server and its state after the connection attempt. */
export interface ServerRow {
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

/** Connects to every configured server, or to the one with this name if it is not disabled. Closing the app stops them. */
export async function connectServers(
  app: App,
  project: Project,
  name?: string,
): Promise<{ readonly rows: ServerRow[]; readonly problems: readonly string[] }> {
  const { cwd, roots } = project.workspace;
  const { confineProgram: confine } = project;
  const { servers: settings, disabled, problems } = createServerList(project.config, noGivenServers, cwd);
  const servers = app.openServers({ userCapabilities: () => noQuestions, visited: () => {} });
  const user = {};
  const wanted = settings.filter((each) => name === undefined || each.name === name);
  const connected = await Promise.all(
    wanted.map((each) => connect(servers.join(each, { roots, confine }, user))),
  );
  const off = name === undefined ? disabled.map((each) => disabledRow(project, each)) : [];
  const rows = [...connected, ...off];
  return { rows, problems };
}

const noQuestions = { forms: false, urls: false, sampling: false };

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
