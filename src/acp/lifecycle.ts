import { isAbsolute } from "node:path";
import { stat } from "node:fs/promises";
import type { AgentApp } from "@agentclientprotocol/sdk/unstable";
import type { Folders } from "../session/sessions.ts";
import type { Session } from "../session/session.ts";
import { InvalidCursor } from "../storage/session-store.ts";
import { pickersOf, type SessionView } from "./session-view.ts";
import { internalError, invalidParams, sessionNotFound } from "./errors.ts";
import type { Connection } from "./connection.ts";
import { parseSessionId } from "./params.ts";
import { optionsOf, setMode, setOption } from "./config-options.ts";

/** Sessions on one page of a list. */
const pageSize = 100;

/** Everything a client does with sessions beside talking in them. */
export function lifecycleHandlers(app: AgentApp, connection: Connection): void {
  const { sessions } = connection;

  app.onRequest("session/new", async ({ params, requestId }) => {
    const session = await sessions.create(await checkedFolders(params));
    const view = connection.addView(session);
    connection.holdUntilAnswered(view, requestId);
    await greet(view, session, params.mcpServers.length);
    return { sessionId: session.id, ...pickersOf(session) };
  });

  app.onRequest("session/load", ({ params, signal }) =>
    connection.setups.run(params.sessionId, async () => {
      const { session, notice } = await open(connection, params);
      const view = connection.viewOf(session);
      view.release();
      await view.replay(sessions.history(session.id), signal);
      await greet(view, session, params.mcpServers.length, notice);
      await view.tell();
      if (!session.isBusy) view.hold();
      return pickersOf(session);
    }),
  );

  app.onRequest("session/resume", ({ params, requestId }) =>
    connection.setups.run(params.sessionId, async () => {
      const { session, notice } = await open(connection, params);
      const view = connection.viewOf(session);
      connection.holdUntilAnswered(view, requestId);
      await greet(view, session, params.mcpServers?.length ?? 0, notice);
      return pickersOf(session);
    }),
  );

  app.onRequest("session/list", async ({ params }) => {
    const { cwd, cursor } = params;
    if (cwd !== undefined && cwd !== null && !isAbsolute(cwd))
      throw invalidParams(`cwd must be an absolute path, not "${cwd}".`);
    const archived = toArchiveFilter(params.archived);
    try {
      const page = await sessions.list({
        limit: pageSize,
        ...archived,
        ...(cwd && { cwd }),
        ...(cursor && { cursor }),
      });
      return {
        sessions: page.sessions.map((info) => ({
          sessionId: info.id,
          cwd: info.cwd,
          title: info.title ?? null,
          updatedAt: new Date(info.time.updated).toISOString(),
          ...(info.additionalDirectories?.length && { additionalDirectories: info.additionalDirectories }),
          ...(info.time.archived !== undefined && { archived: true }),
        })),
        ...(page.nextCursor && { nextCursor: page.nextCursor }),
      };
    } catch (error) {
      if (error instanceof InvalidCursor)
        throw invalidParams("The cursor is not one that session/list gave.");
      throw error;
    }
  });

  app.onRequest("session/close", ({ params }) =>
    connection.setups.run(params.sessionId, async () => {
      await sessions.close(parseSessionId(params.sessionId));
      connection.removeView(params.sessionId);
      return {};
    }),
  );

  app.onRequest("session/delete", ({ params }) =>
    connection.setups.run(params.sessionId, async () => {
      connection.findView(params.sessionId)?.hold();
      await removeIfKnown(connection, params.sessionId);
      connection.removeView(params.sessionId);
      return {};
    }),
  );

  app.onRequest("session/set_mode", async ({ params, requestId }) => {
    const view = connection.view(params.sessionId);
    view.release();
    connection.holdUntilAnswered(view, requestId);
    await setMode(view.session, params.modeId);
    return {};
  });

  app.onRequest("session/set_config_option", async ({ params, requestId }) => {
    const view = connection.view(params.sessionId);
    view.release();
    connection.holdUntilAnswered(view, requestId);
    await setOption(view.session, params.configId, params.value);
    return { configOptions: optionsOf(view.session) };
  });
}

/** Unstable: whether archived sessions are listed. */
function toArchiveFilter(archived: string | null | undefined) {
  switch (archived) {
    case undefined:
    case null:
    case "exclude":
      return {};
    case "include":
      return { includeArchived: true };
    case "only":
      return { onlyArchived: true };
    default:
      throw invalidParams(`archived must be "exclude", "include" or "only", not "${archived}".`);
  }
}

async function removeIfKnown(connection: Connection, sessionId: string): Promise<void> {
  try {
    await connection.sessions.remove(parseSessionId(sessionId));
  } catch (error) {
    if (!(error instanceof Error && "code" in error && error.code === -32002)) throw error;
  }
}

async function open(
  connection: Connection,
  params: { sessionId: string; cwd: string; additionalDirectories?: string[] },
): Promise<{ session: Session; notice: string | undefined }> {
  const id = parseSessionId(params.sessionId);
  const opened = await connection.sessions.open(id, await checkedFolders(params));
  switch (opened.status) {
    case "opened":
      return opened;
    case "missing":
      throw sessionNotFound(id);
    case "busy": {
      const who = opened.pid === undefined ? "another process" : `another process (pid ${opened.pid})`;
      throw internalError(`The session ${id} is open in ${who}. Close it there first.`);
    }
  }
}

export async function checkedFolders(params: {
  cwd: string;
  additionalDirectories?: string[] | null;
}): Promise<Folders> {
  const additionalDirectories = params.additionalDirectories ?? [];
  for (const [name, path] of [
    ["cwd", params.cwd],
    ...additionalDirectories.map((path) => ["additionalDirectories", path]),
  ]) {
    await checkFolder(name ?? "", path ?? "");
  }
  return { cwd: params.cwd, additionalDirectories };
}

async function checkFolder(name: string, path: string): Promise<void> {
  if (!isAbsolute(path)) throw invalidParams(`${name} must be an absolute path, not "${path}".`);
  const found = await stat(path).catch(() => undefined);
  if (found === undefined) throw invalidParams(`${name}: the folder "${path}" does not exist.`);
  if (!found.isDirectory()) throw invalidParams(`${name}: "${path}" is not a folder.`);
}

/** What a client is told of a session beside the answer itself. */
export async function greet(
  view: SessionView,
  session: Session,
  mcpServers: number,
  notice?: string,
): Promise<void> {
  await view.sendCommands();
  await view.introduce();
  for (const problem of session.project.problems) await view.notice("warning", problem);
  if (mcpServers > 0)
    await view.notice("warning", `MCP servers are not supported yet; ${mcpServers} were not started.`);
  if (notice !== undefined) await view.notice("warning", notice);
}
