import { parseArgs } from "node:util";
import { messageOf, UserError } from "../base/errors.ts";
import type { AuthorizeOutcome } from "../mcp/oauth-flow.ts";
import { nothingGiven, type RemoteServer, serverList } from "../mcp/server-settings.ts";
import { showInvisible } from "../permission/invisible.ts";
import type { Project } from "../session/project.ts";
import { localApp } from "./local-app.ts";
import { UsageError } from "./usage.ts";

/** `fairlead mcp`: lists servers, authorizes remote ones and forgets them. */
export async function mcp(args: readonly string[]): Promise<number> {
  const { values, positionals } = parsed(args);
  const [verb, name, ...more] = positionals;
  if (more.length > 0) throw new UsageError(`mcp ${verb} takes one server; too much: ${more.join(" ")}`);
  switch (verb) {
    case "list":
      if (name !== undefined) throw new UsageError("mcp list takes no server: it lists all of them");
      return list(values);
    case "auth":
      return auth(required(verb, name), values);
    case "logout":
      return values.all ? logoutAll() : logout(required(verb, name));
    default:
      throw new UsageError(`mcp takes list, auth NAME or logout NAME, not "${verb ?? ""}"`);
  }
}

interface Flags {
  json?: boolean;
  "no-browser"?: boolean;
  all?: boolean;
}

function parsed(args: readonly string[]) {
  try {
    return parseArgs({
      args: [...args],
      allowPositionals: true,
      options: {
        json: { type: "boolean" },
        "no-browser": { type: "boolean" },
        all: { type: "boolean" },
      },
    });
  } catch (error) {
    throw new UsageError(messageOf(error));
  }
}

async function list(flags: Flags): Promise<number> {
  const { app, project } = await localApp();
  const { listServers } = await import("./mcp-list.ts");
  await listServers(app, project, flags.json ?? false);
  if (project.consent !== undefined) process.stderr.write(`fairlead:${waitingOf(project)}\n`);
  return 0;
}

async function auth(name: string, flags: Flags): Promise<number> {
  const { app, project } = await localApp();
  const server = remoteServer(project, name);
  const { authorizeAtTerminal, failureOf } = await import("./mcp-auth.ts");
  const opensBrowser = !flags["no-browser"] && process.stderr.isTTY;
  const outcome = await authorizeAtTerminal({ server, store: app.authorizations, opensBrowser });
  if (flags.json) print(JSON.stringify({ name, url: server.url, ...outcome }));
  const failure = failureOf(outcome, server);
  if (failure !== undefined) process.stderr.write(`fairlead: ${showInvisible(failure.message)}\n`);
  else if (!flags.json) print(successOf(outcome, server));
  return exitCodes[outcome.outcome];
}

const exitCodes: Readonly<Record<AuthorizeOutcome["outcome"], number>> = {
  authorized: 0,
  notNeeded: 0,
  declined: 1,
  failed: 1,
  cancelled: 130,
};

function successOf({ outcome }: AuthorizeOutcome, { name }: RemoteServer): string {
  return outcome === "notNeeded"
    ? `"${name}" answers without being authorized.`
    : `"${name}" is authorized. Sessions that are open use it after /mcp reconnect ${name}.`;
}

/** A server is named as in the configuration, or by its address, for it may have gone from there. */
async function logout(name: string): Promise<number> {
  const { app, project } = await localApp();
  const url = URL.canParse(name) ? name : remoteServer(project, name).url;
  const isForgotten = await app.authorizations.forget(url);
  print(isForgotten ? `The authorization of ${url} is forgotten here.` : `Nothing was kept of ${url}.`);
  return 0;
}

async function logoutAll(): Promise<number> {
  const { app } = await localApp();
  const all = await app.authorizations.list();
  for (const { serverUrl } of all) {
    await app.authorizations.forget(serverUrl);
    print(`The authorization of ${serverUrl} is forgotten here.`);
  }
  if (all.length === 0) print("Nothing was kept of any server.");
  return 0;
}

function remoteServer(project: Project, name: string): RemoteServer {
  const { servers } = serverList(project.config, nothingGiven, project.workspace.cwd);
  const server = servers.find((one) => one.name === name);
  if (server?.type === "remote") return server;
  if (server?.type === "local")
    throw new UserError(`"${name}" runs on this computer; only remote servers are authorized.`);
  const remote = servers.filter(({ type }) => type === "remote").map((one) => one.name);
  const known = remote.length === 0 ? "none" : remote.join(", ");
  throw new UserError(
    `There is no MCP server "${name}"; remote ones that are configured: ${known}.${waitingOf(project)}`,
  );
}

function waitingOf({ consent }: Project): string {
  if (consent === undefined) return "";
  return ` What the project configures waits for your trust: fairlead trust add ${consent.folder}`;
}

function required(verb: string, name: string | undefined): string {
  if (name === undefined) throw new UsageError(`mcp ${verb} needs the name of a server`);
  return name;
}

function print(text: string): void {
  process.stdout.write(`${showInvisible(text)}\n`);
}
