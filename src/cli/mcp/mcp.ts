import { UserError } from "../../base/errors.ts";
import type { AuthorizeOutcome } from "../../mcp/oauth/oauth-flow.ts";
import { noGivenServers, type RemoteServer, createServerList } from "../../mcp/server-settings.ts";
import { showInvisible } from "../../base/text/invisible.ts";
import type { Project } from "../../conversation/project.ts";
import type { Call } from "../command-line/command.ts";
import { openLocalApp } from "../local-app.ts";
import { print, writeNotice } from "../terminal/output.ts";
import { UsageError } from "../command-line/usage.ts";

/** Lists the MCP servers and their status. */
export async function listMcp(call: Call): Promise<number> {
  const { app, project } = await openLocalApp();
  const { listServers } = await import("./mcp-list.ts");
  await listServers(app, project, call.has("json"));
  if (project.consent !== undefined) writeNotice(describePendingConsent(project).trim());
  return 0;
}

/** Connects to one server. Returns 1 if that fails. */
export async function testMcp(call: Call): Promise<number> {
  const [name = ""] = call.operands;
  const { app, project } = await openLocalApp();
  const { testServer } = await import("./mcp-list.ts");
  const isConnected = await testServer(app, project, name, call.has("json"));
  if (isConnected === undefined)
    throw new UserError(
      `There is no MCP server "${name}". fairlead mcp list shows them.${describePendingConsent(project)}`,
    );
  return isConnected ? 0 : 1;
}

/** Authorizes the program for a remote server in the user's browser. */
export async function authorizeMcp(call: Call): Promise<number> {
  const [name = ""] = call.operands;
  const { app, project } = await openLocalApp();
  const server = findRemoteServer(project, name);
  const { authorizeAtTerminal, toFailure } = await import("./mcp-auth.ts");
  const opensBrowser = !call.has("no-browser") && process.stderr.isTTY;
  const outcome = await authorizeAtTerminal({ server, store: app.authorizations, opensBrowser });
  if (call.has("json")) await print(JSON.stringify({ name, url: server.url, ...outcome }));
  const failure = toFailure(outcome, server);
  if (failure !== undefined) writeNotice(showInvisible(failure.message));
  else if (!call.has("json")) await print(showInvisible(describeSuccess(outcome, server)));
  return exitCodes[outcome.outcome];
}

/** Removes the stored authorization of a server. */
export async function logoutMcp(call: Call): Promise<number> {
  const [name] = call.operands;
  if (call.has("all")) return logoutAll();
  if (name === undefined) throw new UsageError("mcp logout needs the name of a server, or --all", call.name);
  return logout(name);
}

const exitCodes: Readonly<Record<AuthorizeOutcome["outcome"], number>> = {
  authorized: 0,
  notNeeded: 0,
  declined: 1,
  failed: 1,
  cancelled: 130,
};

function describeSuccess({ outcome }: AuthorizeOutcome, { name }: RemoteServer): string {
  return outcome === "notNeeded"
    ? `"${name}" works without authorization.`
    : `"${name}" is authorized. Sessions that are open use it after /mcp reconnect ${name}.`;
}

/** Removes an authorization by name, or by address when the server is no longer configured. */
async function logout(name: string): Promise<number> {
  const { app, project } = await openLocalApp();
  const url = URL.canParse(name) ? name : findRemoteServer(project, name).url;
  const isForgotten = await app.authorizations.forget(url);
  const result = isForgotten
    ? `Removed the authorization of ${url}.`
    : `No authorization of ${url} is stored.`;
  await print(showInvisible(result));
  return 0;
}

async function logoutAll(): Promise<number> {
  const { app } = await openLocalApp();
  const all = await app.authorizations.list();
  for (const { serverUrl } of all) {
    await app.authorizations.forget(serverUrl);
    await print(showInvisible(`Removed the authorization of ${serverUrl}.`));
  }
  if (all.length === 0) await print("No authorizations are stored.");
  return 0;
}

function findRemoteServer(project: Project, name: string): RemoteServer {
  const { servers } = createServerList(project.config, noGivenServers, project.workspace.cwd);
  const server = servers.find((one) => one.name === name);
  if (server?.type === "remote") return server;
  if (server?.type === "local")
    throw new UserError(`"${name}" runs on this computer; only remote servers are authorized.`);
  const remote = servers.filter(({ type }) => type === "remote").map((one) => one.name);
  const known = remote.length === 0 ? "none" : remote.join(", ");
  throw new UserError(
    `There is no MCP server "${name}"; configured remote servers: ${known}.${describePendingConsent(project)}`,
  );
}

function describePendingConsent({ consent }: Project): string {
  if (consent === undefined) return "";
  return ` The project's configuration needs your trust: fairlead trust add ${consent.folder}`;
}
