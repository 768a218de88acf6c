import { isAbsolute, resolve } from "node:path";
import { realpath, stat } from "node:fs/promises";
import type {
  AgentApp,
  ListSessionsRequest,
  ListSessionsResponse,
  McpServer,
  SessionInfo,
} from "@agentclientprotocol/sdk/unstable";
import { isSessionId } from "../../message/ids.ts";
import type { Folders } from "../../conversation/project.ts";
import type { Session } from "../../session/session.ts";
import type { SessionRow } from "../../storage/session-list.ts";
import { InvalidCursor } from "../../storage/session-store.ts";
import type { SessionView } from "../view/session-view.ts";
import { internalError, invalidParams, sessionNotFound } from "../errors.ts";
import { ClientPaths } from "../client-paths.ts";
import type { AcpConnection } from "../connection.ts";
import { type ClientPromptParams, parseClientPrompt } from "./client-prompt.ts";
import { toServers } from "./mcp-servers.ts";
import { parseSessionId } from "./params.ts";
import { createClientOptions, createPickers, setMode, setOption } from "../view/config-options.ts";

/** Sessions on one page of a list. */
const pageSize = 100;

/** Handlers for sessions: create, load, resume, list, close, delete and configure. */
export function lifecycleHandlers(app: AgentApp, connection: AcpConnection): void {
  app.onRequest("session/new", async ({ params, requestId }) => {
    const session = await newSession(connection, params, requestId);
    return { sessionId: session.id, ...createPickers(session, connection.client) };
  });

  app.onRequest("session/load", async ({ params, signal, requestId }) =>
    createPickers(await loadSession(connection, params, requestId, signal), connection.client),
  );

  app.onRequest("session/resume", async ({ params, requestId }) =>
    createPickers(await resumeSession(connection, params, requestId), connection.client),
  );

  app.onRequest("session/list", ({ params }) => listSessions(connection, params));

  app.onRequest("session/close", ({ params }) => closeSession(connection, params.sessionId));

  app.onRequest("session/delete", ({ params }) => deleteSession(connection, params.sessionId));

  app.onRequest("session/set_mode", async ({ params, requestId }) => {
    const { session } = await changeSession(connection, params.sessionId, requestId, (session) =>
      setMode(session, params.modeId),
    );
    return afterStored(session, {});
  });

  app.onRequest("session/set_config_option", async ({ params, requestId }) => {
    const { session } = await changeOption(connection, params, requestId);
    return afterStored(session, { configOptions: createClientOptions(session, connection.client) });
  });
}

/** Params shared by the requests that open a session. */
export interface SessionParams extends ClientPromptParams {
  cwd: string;
  additionalDirectories?: string[];
  mcpServers?: McpServer[];
}

export type RequestId = string | number | null;

/** Creates a session. Its initial updates are sent after the response. */
export async function newSession(
  connection: AcpConnection,
  params: SessionParams,
  requestId: RequestId,
): Promise<Session> {
  const given = parseClientPrompt(params);
  const { folders, notices } = await checkFolders(params);
  const paths = await ClientPaths.create(folders);
  const session = await connection.sessions.create(folders, given);
  session.setServers(toServers(params.mcpServers ?? []));
  const view = connection.addView(session, paths);
  connection.holdUntilAnswered(view, requestId, () => session.servers.start());
  sendInitialUpdates(view, session, notices);
  return session;
}

/** Opens a session and replays it before the response. Later updates wait for the client's next request. */
export function loadSession(
  connection: AcpConnection,
  params: SessionParams & { sessionId: string },
  requestId: RequestId,
  signal: AbortSignal,
): Promise<Session> {
  return connection.setupQueue.run(params.sessionId, async () => {
    signal.throwIfAborted();
    const { session, notices, paths } = await open(connection, params);
    session.setServers(toServers(params.mcpServers ?? []));
    const view = connection.getOrAddView(session, paths);
    connection.outbox.afterResponse(requestId, () => session.servers.start());
    view.state.resume();
    await view.replay(connection.sessions.history(session.id), signal);
    sendInitialUpdates(view, session, notices);
    view.sendPendingNotices();
    view.state.resume();
    if (!session.isBusy) view.state.pause();
    return session;
  });
}

/** Opens a session without a replay. */
export function resumeSession(
  connection: AcpConnection,
  params: SessionParams & { sessionId: string },
  requestId: RequestId,
): Promise<Session> {
  return connection.setupQueue.run(params.sessionId, async () => {
    const { session, notices, paths } = await open(connection, params);
    if (params.mcpServers) session.setServers(toServers(params.mcpServers));
    const view = connection.getOrAddView(session, paths);
    connection.holdUntilAnswered(view, requestId, () => session.servers.start());
    sendInitialUpdates(view, session, notices);
    return session;
  });
}

export async function listSessions(
  { sessions }: AcpConnection,
  params: ListSessionsRequest,
): Promise<ListSessionsResponse> {
  const { cwd, cursor } = params;
  if (cwd !== undefined && cwd !== null && !isAbsolute(cwd))
    throw invalidParams(`cwd must be an absolute path, not "${cwd}".`);
  const folder = cwd ? { cwd: await resolveRealPath(cwd) } : {};
  const query = { limit: pageSize, ...toArchiveFilter(params.archived), ...folder };
  try {
    const page = await sessions.list({ ...query, ...(cursor && { cursor }) });
    return {
      // Return the client's path of the folder, which may be a symbolic link.
      sessions: page.sessions.map((row) => ({ ...toSessionInfo(row), ...(cwd && { cwd }) })),
      ...(page.nextCursor && { nextCursor: page.nextCursor }),
    };
  } catch (error) {
    if (error instanceof InvalidCursor)
      throw invalidParams("Invalid cursor: it was not returned by session/list.");
    throw error;
  }
}

/** Resolves the real path, with which sessions are stored. Falls back to the given path if the folder is gone. */
async function resolveRealPath(path: string): Promise<string> {
  return realpath(path).catch(() => resolve(path));
}

function toSessionInfo(row: SessionRow): SessionInfo {
  const { additionalDirectories } = row;
  return {
    sessionId: row.id,
    cwd: row.cwd,
    title: row.title ?? null,
    updatedAt: new Date(row.updated).toISOString(),
    ...(additionalDirectories.length > 0 && { additionalDirectories: [...additionalDirectories] }),
    ...(row.isArchived && { archived: true }),
  };
}

/** Closes a session and ends its turn. Succeeds also for closed and unknown sessions. */
export async function closeSession(
  connection: AcpConnection,
  sessionId: string,
): Promise<Record<string, never>> {
  await connection.closeView(sessionId, async () => {
    if (isSessionId(sessionId)) await connection.sessions.close(sessionId);
  });
  return {};
}

/** Deletes a session. Succeeds also for unknown sessions. */
export async function deleteSession(
  connection: AcpConnection,
  sessionId: string,
): Promise<Record<string, never>> {
  await connection.closeView(sessionId, () => removeIfKnown(connection, sessionId));
  return {};
}

/** Resolves to the answer after the session was written to disk. */
export async function afterStored<Answer>(session: Session, answer: Answer): Promise<Answer> {
  await session.stored();
  return answer;
}

export function changeOption(
  connection: AcpConnection,
  { sessionId, configId, value }: { sessionId: string; configId: string; value: unknown },
  requestId: RequestId,
): Promise<SessionView> {
  return changeSession(connection, sessionId, requestId, (session) => setOption(session, configId, value));
}

/** Changes a session after its pending setups, which may replace it. Resulting updates are sent after the response. */
export function changeSession(
  connection: AcpConnection,
  sessionId: string,
  requestId: RequestId,
  change: (session: Session) => Promise<void>,
): Promise<SessionView> {
  return connection.setupQueue.run(sessionId, async () => {
    const view = connection.getView(sessionId);
    connection.holdUntilAnswered(view, requestId);
    await change(view.session);
    return view;
  });
}

/** Parses the unstable filter for archived sessions. */
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

async function removeIfKnown(connection: AcpConnection, sessionId: string): Promise<void> {
  try {
    await connection.sessions.remove(parseSessionId(sessionId));
  } catch (error) {
    if (!(error instanceof Error && "code" in error && error.code === -32002)) throw error;
  }
}

async function open(
  connection: AcpConnection,
  params: SessionParams & { sessionId: string },
): Promise<{ session: Session; notices: string[]; paths: ClientPaths }> {
  const id = parseSessionId(params.sessionId);
  const given = parseClientPrompt(params);
  const { folders, notices } = await checkFolders(params);
  const paths = await ClientPaths.create(folders);
  const opened = await connection.sessions.open(id, folders);
  switch (opened.status) {
    case "opened":
      if (given !== undefined) await opened.session.setGivenPrompt(given);
      if (opened.notice !== undefined) notices.push(opened.notice);
      return { session: opened.session, notices, paths };
    case "missing":
      throw sessionNotFound(id);
    case "busy": {
      const who = opened.pid === undefined ? "another process" : `another process (pid ${opened.pid})`;
      throw internalError(`The session ${id} is open in ${who}. Close it there first.`);
    }
  }
}

/**
 * Validates the folders of a setup and returns notices for the user. A missing additional folder is skipped with a
 * notice: an editor that stores its list of folders could otherwise not open the session again.
 */
export async function checkFolders(params: {
  cwd: string;
  additionalDirectories?: string[] | null;
}): Promise<{ folders: Folders; notices: string[] }> {
  const { cwd } = params;
  if (!(await isFolder("cwd", cwd))) throw invalidParams(`cwd: the folder "${cwd}" does not exist.`);
  const additionalDirectories: string[] = [];
  const notices: string[] = [];
  for (const path of params.additionalDirectories ?? []) {
    if (await isFolder("additionalDirectories", path)) additionalDirectories.push(path);
    else notices.push(`The folder ${path} does not exist; the session continues without it.`);
  }
  return { folders: { cwd, additionalDirectories }, notices };
}

/** Returns false if the path does not exist. Throws if it is relative or not a folder. */
async function isFolder(name: string, path: string): Promise<boolean> {
  if (!isAbsolute(path)) throw invalidParams(`${name} must be an absolute path, not "${path}".`);
  const found = await stat(path).catch(() => undefined);
  if (found !== undefined && !found.isDirectory()) throw invalidParams(`${name}: "${path}" is not a folder.`);
  return found !== undefined;
}

/** Sends commands, usage, title and warnings of a session. */
export function sendInitialUpdates(view: SessionView, session: Session, notices: readonly string[]): void {
  view.sendCommands();
  view.sendSessionInfo();
  for (const problem of [...session.project.problems, ...notices]) view.notice("warning", problem);
}
