import { resolve } from "node:path";
import { realpath } from "node:fs/promises";
import type {
  ListSessionsRequest,
  ListSessionsResponse,
  McpServer,
  SessionInfo,
} from "@agentclientprotocol/sdk/unstable";
import { UserError } from "../../base/errors.ts";
import { isSessionId } from "../../message/ids.ts";
import { omitBefore, type ReplayStart } from "../../conversation/visible-messages.ts";
import type { Session } from "../../session/session.ts";
import { describeWorktree } from "../../session/session-worktree.ts";
import type { GivenSkill } from "../../skill/skill.ts";
import type { SessionRow } from "../../storage/session-list.ts";
import { InvalidCursor } from "../../storage/session-store.ts";
import type { SessionView } from "../view/session-view.ts";
import { invalidParams, messageNotFound, SessionInUse, sessionNotFound } from "../errors.ts";
import { ClientPaths } from "../client-paths.ts";
import type { AcpConnection } from "../connection.ts";
import { checkAbsolute, checkFolders } from "../session-folders.ts";
import { type ClientPromptParams, parseClientPrompt } from "./client-prompt.ts";
import { toServers } from "./mcp-servers.ts";
import type { Call } from "./method-table.ts";
import { joinTurn } from "./prompt-turn.ts";
import { parseSessionId } from "./session-id.ts";
import { setMode, setOption } from "../view/config-options.ts";

/** Sessions on one page of a list. */
const pageSize = 100;

/** Params shared by the requests that open a session. */
export interface SessionParams extends ClientPromptParams {
  cwd: string;
  additionalDirectories?: string[];
  mcpServers?: McpServer[];
}

/** Creates a session. Its initial updates are sent after the response. */
export async function newSession(
  connection: AcpConnection,
  params: SessionParams,
  { id: requestId }: Call,
): Promise<Session> {
  const given = parseClientPrompt(params);
  const skills = await parseSkills(params);
  const { folders, notices } = await checkFolders(params);
  const paths = await ClientPaths.create(folders);
  const hasWorktree = parseHasWorktree(params);
  const session = await connection.sessions.create(folders, { givenPrompt: given, hasWorktree });
  session.setServers(toServers(params.mcpServers ?? []));
  giveSkills(session, skills, notices);
  const view = connection.addView(session, paths);
  connection.holdUntilOpened(view, requestId);
  sendInitialUpdates(view, session, notices);
  return session;
}

/** Reads from `_meta.replayAfter` where a replay begins. */
export function parseReplayAfter(meta: SessionParams["_meta"]): ReplayStart | undefined {
  const id = meta?.["replayAfter"];
  if (id === undefined || id === null) return undefined;
  if (typeof id !== "string") throw invalidParams("_meta.replayAfter must be the id of a message.");
  return { id, isInclusive: false };
}

/**
 * Opens a session and replays it before the response, from `start` on if given. Later updates wait for the client's next
 * request.
 */
export function loadSession(
  connection: AcpConnection,
  params: SessionParams & { sessionId: string },
  { id: requestId, signal }: Call,
  start?: ReplayStart,
): Promise<Session> {
  return connection.setupQueue.run(params.sessionId, async () => {
    signal.throwIfAborted();
    const { session, notices, paths } = await open(connection, params);
    const servers = params.mcpServers ?? [];
    // A client without servers that joins a turn takes none from it.
    if (servers.length > 0 || !session.isBusy) session.setServers(toServers(servers));
    const view = connection.getOrAddView(session, paths);
    joinTurn(connection, view);
    connection.startAfterResponse(session, requestId);
    view.state.resume();
    const history = connection.sessions.history(session.id);
    const missing = () => messageNotFound(start?.id ?? "");
    await view.replay(start === undefined ? history : omitBefore(history, start, missing), signal);
    sendInitialUpdates(view, session, notices);
    view.sendPendingNotices();
    view.state.resume();
    if (!session.isBusy) view.state.pauseAfterLoad();
    return session;
  });
}

/** Opens a session without a replay. */
export function resumeSession(
  connection: AcpConnection,
  params: SessionParams & { sessionId: string },
  { id: requestId }: Call,
): Promise<Session> {
  return connection.setupQueue.run(params.sessionId, async () => {
    const { session, notices, paths } = await open(connection, params);
    if (params.mcpServers && (params.mcpServers.length > 0 || !session.isBusy))
      session.setServers(toServers(params.mcpServers));
    const view = connection.getOrAddView(session, paths);
    joinTurn(connection, view);
    connection.holdUntilOpened(view, requestId);
    await view.announceJobs();
    sendInitialUpdates(view, session, notices);
    return session;
  });
}

export async function listSessions(
  { sessions }: AcpConnection,
  params: ListSessionsRequest,
): Promise<ListSessionsResponse> {
  const { cwd, cursor } = params;
  if (cwd !== undefined && cwd !== null) checkAbsolute("cwd", cwd);
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

/** Changes an option. Resolves to the answer after the session was written to disk. */
export function changeOption<Answer>(
  connection: AcpConnection,
  { sessionId, configId, value }: { sessionId: string; configId: string; value: unknown },
  call: Call,
  createAnswer: (session: Session) => Answer,
): Promise<Answer> {
  const change = (session: Session) => setOption(session, configId, value);
  return changeSession(connection, sessionId, call, change, createAnswer);
}

export function changeMode(
  connection: AcpConnection,
  { sessionId, modeId }: { sessionId: string; modeId: string },
  call: Call,
): Promise<Record<string, never>> {
  return changeSession(
    connection,
    sessionId,
    call,
    (session) => setMode(session, modeId),
    () => ({}),
  );
}

/**
 * Changes a session after its pending setups, which may replace it. The answer is created before the next change;
 * resulting updates are sent after it.
 */
async function changeSession<Answer>(
  connection: AcpConnection,
  sessionId: string,
  { id: requestId }: Call,
  change: (session: Session) => Promise<void>,
  createAnswer: (session: Session) => Answer,
): Promise<Answer> {
  const { session, answer } = await connection.setupQueue.run(sessionId, async () => {
    const view = connection.getView(sessionId);
    connection.holdUntilAnswered(view, requestId);
    await change(view.session);
    return { session: view.session, answer: createAnswer(view.session) };
  });
  await session.stored();
  return answer;
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
  const skills = await parseSkills(params);
  const { folders, notices } = await checkFolders(params);
  const paths = await ClientPaths.create(folders);
  const opened = await connection.sessions.open(id, folders);
  switch (opened.status) {
    case "opened":
      if (given !== undefined) await opened.session.setGivenPrompt(given);
      // A client without skills that joins a turn takes none from it.
      if (skills.length > 0 || !opened.session.isBusy) giveSkills(opened.session, skills, notices);
      if (opened.notice !== undefined) notices.push(opened.notice);
      return { session: opened.session, notices, paths };
    case "missing":
      throw sessionNotFound(id);
    case "busy": {
      throw new SessionInUse(id, opened.pid);
    }
  }
}

/** Parses the client's skills from `_meta.skills`. */
export async function parseSkills({ _meta }: SessionParams): Promise<GivenSkill[]> {
  const given = _meta?.["skills"];
  if (given === undefined || given === null) return [];
  const { parseGivenSkills } = await import("../../skill/given-skills.ts");
  try {
    return parseGivenSkills(given);
  } catch (error) {
    throw error instanceof UserError ? invalidParams(`_meta.${error.message}.`) : error;
  }
}

/** Replaces the client's skills. Adds a notice about those whose names are taken. */
export function giveSkills(session: Session, skills: readonly GivenSkill[], notices: string[]): void {
  session.setSkills(skills);
  const inUse = new Set<unknown>(session.project.skills);
  const unused = skills.filter((skill) => !inUse.has(skill)).map(({ name }) => name);
  if (unused.length === 0) return;
  notices.push(`Skills of the editor are not used, because others have their names: ${unused.join(", ")}.`);
}

/** Parses `_meta.worktree`: whether a new session works in a worktree; undefined for the configured default. */
function parseHasWorktree({ _meta }: SessionParams): boolean | undefined {
  const value = _meta?.["worktree"];
  if (value === undefined || typeof value === "boolean") return value;
  throw invalidParams(`_meta.worktree must be true or false, not ${JSON.stringify(value)}.`);
}

/** Sends commands, usage, title and warnings of a session. */
export function sendInitialUpdates(view: SessionView, session: Session, notices: readonly string[]): void {
  view.sendCommands();
  view.sendSessionInfo();
  for (const problem of [...session.project.problems, ...notices]) view.notice("warning", problem);
  const { worktree } = session.info;
  if (worktree !== undefined) view.notice("info", describeWorktree(worktree));
}
