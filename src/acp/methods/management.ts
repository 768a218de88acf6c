import { z } from "zod";
import type { Session } from "../../session/session.ts";
import { normalizeTitle } from "../../session-state/title.ts";
import { ClientPaths } from "../client-paths.ts";
import type { AcpConnection } from "../connection.ts";
import { invalidParams, sessionNotFound } from "../errors.ts";
import { checkFolders } from "../session-folders.ts";
import { parseClientPrompt } from "./client-prompt.ts";
import {
  changeOption,
  giveSkills,
  parseSkills,
  sendInitialUpdates,
  type SessionParams,
} from "./lifecycle.ts";
import { toServers } from "./mcp-servers.ts";
import type { Call } from "./method-table.ts";
import { parseSessionId } from "./session-id.ts";

/** `_meta` of a fork. `messageId` is the last message to copy, as sent with its chunks. */
const forkMetaSchema = z.looseObject({ messageId: z.string().optional() });

export function changeModel(
  connection: AcpConnection,
  { sessionId, modelId: value }: { sessionId: string; modelId: string },
  call: Call,
): Promise<Record<string, never>> {
  return changeOption(connection, { sessionId, configId: "model", value }, call, () => ({}));
}

/** Creates a session with a copy of the conversation, up to `_meta.messageId` if given. */
export function forkSession(
  connection: AcpConnection,
  params: SessionParams & { sessionId: string },
  { id: requestId }: Call,
): Promise<Session> {
  const { sessions, setupQueue: setups } = connection;
  return setups.run(params.sessionId, async () => {
    const id = parseSessionId(params.sessionId);
    const point = parseForkPoint(params._meta);
    const given = parseClientPrompt(params);
    const skills = await parseSkills(params);
    const { folders, notices } = await checkFolders(params);
    const paths = await ClientPaths.create(folders);
    const forked = await sessions.fork(id, folders, point);
    if (forked.status === "missing") throw sessionNotFound(id);
    if (forked.status === "no such message")
      throw invalidParams(`The session has no message "${point}" to fork at.`);
    const { session } = forked;
    if (given !== undefined) await session.setGivenPrompt(given);
    session.setServers(toServers(params.mcpServers ?? []));
    giveSkills(session, skills, notices);
    const view = connection.addView(session, paths);
    connection.holdUntilOpened(view, requestId);
    sendInitialUpdates(view, session, notices);
    return session;
  });
}

/** Sets the title after the pending setups of the session. Resulting updates are sent after the response. */
export async function setTitle(
  connection: AcpConnection,
  params: { sessionId: string; title: string },
  { id: requestId }: Call,
): Promise<{ title: string }> {
  const id = parseSessionId(params.sessionId);
  const title = toTitle(params.title);
  return connection.setupQueue.run(id, async () => {
    const view = connection.findOpenView(id);
    if (view !== undefined) connection.holdUntilAnswered(view, requestId);
    if (!(await connection.sessions.setTitle(id, title))) throw sessionNotFound(id);
    return { title };
  });
}

/** Archives a session, which closes it, or restores it. */
export async function setArchived(
  connection: AcpConnection,
  sessionId: string,
  isArchived: boolean,
): Promise<Record<string, never>> {
  const id = parseSessionId(sessionId);
  const change = async () => {
    if (!(await connection.sessions.setArchived(id, isArchived))) throw sessionNotFound(id);
  };
  if (isArchived) await connection.closeView(sessionId, change);
  else await connection.setupQueue.run(sessionId, change);
  return {};
}

export async function getStatus(
  { sessions }: AcpConnection,
  sessionId: string,
): Promise<{ status: "open" | "saved" }> {
  const id = parseSessionId(sessionId);
  if (sessions.live(id) !== undefined) return { status: "open" };
  if (await sessions.isStored(id)) return { status: "saved" };
  throw sessionNotFound(id);
}

function parseForkPoint(meta: unknown): string | undefined {
  if (meta === undefined || meta === null) return undefined;
  const parsed = forkMetaSchema.safeParse(meta);
  if (!parsed.success) throw invalidParams("_meta.messageId must be the id of a message.");
  return parsed.data.messageId;
}

function toTitle(text: string): string {
  const title = normalizeTitle(text);
  if (title === "") throw invalidParams("A title needs at least one character.");
  return title;
}
