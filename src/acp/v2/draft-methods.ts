import type * as draft from "@agentclientprotocol/sdk/experimental/v2/unstable";
import protocolParams from "../../../schema/acp-v2-params.json" with { type: "json" };
import { isRecord } from "../../base/text/record.ts";
import { type MessageId, newMessageId } from "../../message/ids.ts";
import type { ReplayStart } from "../../conversation/visible-messages.ts";
import type { Session } from "../../session/session.ts";
import type { SessionView } from "../view/session-view.ts";
import type { AcpConnection } from "../connection.ts";
import { injectionRejected, invalidParams, invalidRequest } from "../errors.ts";
import { getRequestedVersion, type ProgramInfo } from "../initialize.ts";
import { AccountRequests } from "../methods/account-requests.ts";
import {
  changeOption,
  closeSession,
  deleteSession,
  listSessions,
  loadSession,
  newSession,
  resumeSession,
} from "../methods/lifecycle.ts";
import { forkSession, getStatus, setArchived, setTitle } from "../methods/management.ts";
import {
  draftRewindParams,
  editPromptParams,
  type EditPromptParams,
  injectParams,
  type InjectParams,
  promptContent,
  type ReplaceInjectionParams,
  replaceInjectionParams,
  type RevokeInjectionParams,
  revokeInjectionParams,
  rewindParams,
  type RewindParams,
  rewindPointsParams,
  steeringParams,
  type SteeringParams,
} from "../methods/extensions.ts";
import { type Call, type ProtocolVersion, type RequestHandler, RowFactory } from "../methods/method-table.ts";
import {
  cancelTurn,
  replaceInjection,
  revokeInjection,
  steer,
  toPromptInput,
} from "../methods/prompt-turn.ts";
import { listRewindPoints, rewindBefore, rewindSession, rewindTo } from "../methods/rewind.ts";
import type { DraftSessions } from "./draft-sessions.ts";
import { createDraftInitializeResult, draftVersion, parseDraftFeatures } from "./initialize.ts";
import { checkServers, toSessionParams } from "./session-params.ts";
import { cancelledError } from "./turns.ts";

/** The methods of version 2. `select` is called when an `initialize` succeeds. */
export function createDraftMethods(
  acp: AcpConnection,
  sessions: DraftSessions,
  program: ProgramInfo,
  select: () => void,
): ProtocolVersion {
  const account = new AccountRequests(acp);
  const pickers = (session: Session) => sessions.get(session).pickers();
  const opened = (session: Session) => ({ sessionId: session.id, ...pickers(session) });
  const options = (session: Session) => ({ configOptions: pickers(session).configOptions });
  const row = new RowFactory<draft.AgentRequestParamsByMethod, draft.AgentNotificationParamsByMethod>(
    protocolParams,
  );
  const [, readInitialize] = row.request("initialize", ({ protocolVersion, capabilities }) => {
    if (protocolVersion < draftVersion)
      throw invalidRequest(`a repeated initialize must request protocol version ${draftVersion} or later`);
    acp.client = parseDraftFeatures(capabilities);
    select();
    return createDraftInitializeResult(program, capabilities);
  });
  const initialize: RequestHandler = (given, call) => readInitialize(withClientInfo(given), call);
  const requests: [string, RequestHandler][] = [
    ["initialize", initialize],

    row.request("auth/login", (p) => account.authenticate(p)),
    row.request("auth/logout", () => account.logOut()),
    row.request("auth/status", () => account.status()),
    row.request("providers/list", () => account.listProviders()),
    row.request("providers/set", (p) => account.setProvider(p)),
    row.request("providers/disable", (p) => account.disableProvider(p)),

    row.request("session/new", (p, call) => create(acp, p, call).then(opened)),
    row.request("session/resume", (p, call) => resume(acp, sessions, p, call).then(pickers)),
    row.request("session/fork", (p, call) => forkSession(acp, toStored(p), call).then(opened)),
    row.request("session/list", (p) => listSessions(acp, p)),
    row.request("session/close", (p) => closeSession(acp, p.sessionId)),
    row.request("session/delete", (p) => deleteSession(acp, p.sessionId)),
    row.request("session/set_title", (p, call) => setTitle(acp, p, call)),
    row.request("session/archive", (p) => setArchived(acp, p.sessionId, true)),
    row.request("session/unarchive", (p) => setArchived(acp, p.sessionId, false)),
    row.request("session/status", (p) => getState(acp, sessions, p.sessionId)),
    row.request("session/set_config_option", (p, call) => changeOption(acp, p, call, options)),

    row.request("session/prompt", (p) => prompt(acp, sessions, p)),
    row.extension("_session/steering", steeringParams, (p) => steerTurn(acp, sessions, p)),
    row.extension("session/inject", injectParams, (p) => inject(acp, sessions, p)),
    row.extension("session/revoke_inject", revokeInjectionParams, (p) => revoke(acp, sessions, p)),
    row.extension("session/replace_inject", replaceInjectionParams, (p) => replace(acp, sessions, p)),
    row.extension("session/rewind", draftRewindParams, (p, call) => rewind(acp, sessions, p, call)),
    row.extension("session/edit_prompt", editPromptParams, (p) => editPrompt(acp, sessions, p)),
    row.extension("_session/rewind_points", rewindPointsParams, (p) => listRewindPoints(acp, p.sessionId)),
    row.extension("_session/rewind", rewindParams, (p, call) => rewindParts(acp, sessions, p, call)),
    row.request("tool_call/cancel", (p) => cancelCall(acp, sessions, p)),
    row.request("terminal/cancel", (p) => cancelTerminal(acp, sessions, p)),
  ];
  const notifications = [row.notification("session/cancel", (p) => cancelTurn(acp, p.sessionId))];
  return { requests: new Map(requests), notifications: new Map(notifications), isStrict: true };
}

/** Adds the required `info` if it is missing in a request for a newer version, which may not have it. */
function withClientInfo(given: unknown): unknown {
  if (getRequestedVersion(given) <= draftVersion || !isRecord(given)) return given;
  return isRecord(given["info"]) ? given : { ...given, info: { name: "unknown", version: "unknown" } };
}

async function create(acp: AcpConnection, given: draft.NewSessionRequest, call: Call): Promise<Session> {
  checkServers(given.mcpServers);
  return newSession(acp, toSessionParams(given), call);
}

async function resume(
  acp: AcpConnection,
  sessions: DraftSessions,
  given: draft.ResumeSessionRequest,
  call: Call,
): Promise<Session> {
  checkServers(given.mcpServers);
  const { replayFrom } = given;
  const session = replayFrom
    ? await loadSession(acp, toStored(given), call, toReplayStart(replayFrom))
    : await resumeSession(acp, toStored(given), call);
  const { runningTurn } = session;
  if (runningTurn !== undefined) sessions.get(session).turns.join(acp.getView(session.id), runningTurn);
  sessions.get(session).sendState();
  return session;
}

/** Returns the message at which a replay begins; undefined for the whole conversation. */
function toReplayStart(replayFrom: draft.ReplayFrom): ReplayStart | undefined {
  const { type } = replayFrom;
  if (type === "start") return undefined;
  const id = type === "_message" && "messageId" in replayFrom ? replayFrom.messageId : undefined;
  if (typeof id === "string") return { id, isInclusive: true };
  throw invalidParams(
    `replayFrom must be { "type": "start" } or { "type": "_message", "messageId": … }, not "${type}".`,
  );
}

function toStored(given: draft.NewSessionRequest & { sessionId: string }) {
  return { ...toSessionParams(given), sessionId: given.sessionId };
}

async function getState(acp: AcpConnection, sessions: DraftSessions, sessionId: string) {
  const status = await getStatus(acp, sessionId);
  const view = acp.findView(sessionId);
  if (view === undefined) return status;
  const { sessionUpdate: _, ...state } = sessions.get(view.session).turns.state;
  return { ...status, state };
}

/** Answers when the message is stored; the end of the turn is reported as the session's state. */
async function prompt(acp: AcpConnection, sessions: DraftSessions, given: draft.PromptRequest) {
  const { receipt } = await queuePrompt(acp, sessions, given);
  return { messageId: await receipt };
}

/** Queues a prompt after the pending setups of its session. The receipt resolves when its message is stored. */
async function queuePrompt(
  acp: AcpConnection,
  sessions: DraftSessions,
  { sessionId, prompt: content, _meta }: draft.PromptRequest,
  injectId?: MessageId,
): Promise<{ receipt: Promise<MessageId> }> {
  if (acp.isBeingSetUp(sessionId) && !(await acp.pendingPrompts.wait(sessionId))) throw cancelledError();
  const view = acp.getView(sessionId);
  const input = toPromptInput(promptContent.read({ prompt: content }).prompt, _meta);
  const queued = { ...input, ...(injectId && { injectId }) };
  return { receipt: sessions.get(view.session).turns.prompt(view, content, queued) };
}

/** Drops the messages after the given one. Files are not changed. */
async function rewind(
  acp: AcpConnection,
  sessions: DraftSessions,
  { sessionId, toMessageId }: { sessionId: string; toMessageId: string },
  call: Call,
): Promise<{ lastMessageId: string }> {
  await rewindTo(acp, sessionId, toMessageId, call);
  sendTruncation(acp, sessions, sessionId, toMessageId);
  return { lastMessageId: toMessageId };
}

async function rewindParts(acp: AcpConnection, sessions: DraftSessions, given: RewindParams, call: Call) {
  const { answer, lastId } = await rewindSession(acp, given, call);
  if (answer.conversation?.rewound === true) sendTruncation(acp, sessions, given.sessionId, lastId);
  return answer;
}

/** Replaces a message of the user and everything after it. Answers as a prompt does. */
async function editPrompt(acp: AcpConnection, sessions: DraftSessions, given: EditPromptParams) {
  const { sessionId, messageId } = given;
  const { prompt: content } = promptContent.read({ prompt: given.content });
  const input = toPromptInput(content, given._meta);
  const lastId = await rewindBefore(acp, sessionId, messageId);
  sendTruncation(acp, sessions, sessionId, lastId);
  const view = acp.getView(sessionId);
  return { messageId: await sessions.get(view.session).turns.prompt(view, content, input) };
}

function sendTruncation(
  acp: AcpConnection,
  sessions: DraftSessions,
  sessionId: string,
  lastId: string | undefined,
): void {
  const { channel } = sessions.get(acp.getView(sessionId).session);
  channel.sendDraft({ sessionUpdate: "history_truncated", lastMessageId: lastId ?? null });
}

function steerTurn(
  acp: AcpConnection,
  sessions: DraftSessions,
  { sessionId, prompt: content }: SteeringParams,
) {
  const answer = steer(acp, sessionId, content);
  const { turns } = sessions.get(acp.getView(sessionId).session);
  if (answer.outcome === "injected") turns.addSteering(answer.messageId, content);
  return answer;
}

/** Adds a message to the running turn, or queues it as the prompt of the next one. Answers with its id. */
async function inject(acp: AcpConnection, sessions: DraftSessions, given: InjectParams) {
  const { sessionId, mode, _meta } = given;
  const { prompt: content } = promptContent.read({ prompt: given.content });
  if (mode === "queue") {
    const injectId = newMessageId();
    const queued = { sessionId, prompt: content, ...(_meta && { _meta }) };
    const { receipt } = await queuePrompt(acp, sessions, queued, injectId);
    // The state of the session reports the error of its turn.
    receipt.catch(() => {});
    return { messageId: injectId };
  }
  if (mode !== "steer") throw invalidParams(`mode must be "queue" or "steer", not "${mode}".`);
  const answer = steerTurn(acp, sessions, { sessionId, prompt: content });
  if (answer.outcome !== "injected") throw injectionRejected("no_running_turn");
  return { messageId: answer.messageId };
}

function revoke(acp: AcpConnection, sessions: DraftSessions, given: RevokeInjectionParams) {
  const answer = revokeInjection(acp, given);
  sessions.get(acp.getView(given.sessionId).session).turns.revoke(given.messageId);
  return answer;
}

function replace(acp: AcpConnection, sessions: DraftSessions, given: ReplaceInjectionParams) {
  const answer = replaceInjection(acp, given);
  sessions.get(acp.getView(given.sessionId).session).turns.replace(given.messageId, given.content);
  return answer;
}

function cancelCall(
  acp: AcpConnection,
  sessions: DraftSessions,
  { sessionId, toolCallId }: { sessionId: string; toolCallId: string },
): Record<string, never> {
  const view = acp.getView(sessionId);
  const isOffered = sessions.get(view.session).channel.cancellable.hasCall(toolCallId);
  return cancel(view, "call", toolCallId, isOffered);
}

/** A terminal ends with its call, whose id it has. */
function cancelTerminal(
  acp: AcpConnection,
  sessions: DraftSessions,
  { sessionId, terminalId }: { sessionId: string; terminalId: string },
): Record<string, never> {
  const view = acp.getView(sessionId);
  const isOffered = sessions.get(view.session).channel.cancellable.hasTerminal(terminalId);
  return cancel(view, "terminal", terminalId, isOffered);
}

function cancel(
  { session, state }: SessionView,
  what: string,
  id: string,
  isOffered: boolean,
): Record<string, never> {
  const job = session.jobs.findRunning(id);
  if (!isOffered || (job === undefined && !session.openCalls.cancel(id)))
    throw invalidParams(`No cancellable ${what} "${id}" found.`);
  job?.stop("user");
  state.resumeAfterLoad();
  return {};
}
