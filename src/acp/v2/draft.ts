import {
  agent,
  type AgentApp,
  type AgentConnector,
  agentProtocolRouter,
  assertSupportedMcpServers,
  McpServer,
} from "@agentclientprotocol/sdk/experimental/v2/unstable";
import type * as draft from "@agentclientprotocol/sdk/experimental/v2/unstable";
import type { McpServer as StableMcpServer } from "@agentclientprotocol/sdk/unstable";
import type { Session } from "../../session/session.ts";
import { authenticate, disableProvider, listProviders, logOut, setProvider } from "../methods/account.ts";
import { AuthStatus } from "../methods/auth-status.ts";
import { createClientOptions } from "../view/config-options.ts";
import type { AcpConnection } from "../connection.ts";
import { toPromptBlocks } from "../view/content.ts";
import { invalidParams } from "../errors.ts";
import type { ProgramInfo } from "../initialize.ts";
import {
  changeOption,
  closeSession,
  deleteSession,
  listSessions,
  loadSession,
  newSession,
  type SessionParams,
  resumeSession,
  afterStored,
} from "../methods/lifecycle.ts";
import { forkSession, setArchived, setTitle, getStatus } from "../methods/management.ts";
import { parseContent } from "../methods/parse-content.ts";
import { steer, steeringParams } from "../methods/prompt.ts";
import { listCommands } from "../view/updates.ts";
import { createDraftRequests } from "./client-requests.ts";
import { DraftChannel } from "./channel.ts";
import { toCommands, toOptions } from "./convert.ts";
import { parseDraftFeatures, createDraftInitializeResult } from "./initialize.ts";
import { cancelledError, Turns } from "./turns.ts";

/** Uses version 2 for clients that request it, and the stable version for all others. */
export function addDraftVersion(
  stable: AgentConnector,
  connection: AcpConnection,
  program: ProgramInfo,
): AgentConnector {
  const sessions = new DraftSessions(connection);
  const app = createDraftAgent(connection, sessions, program);
  return agentProtocolRouter()
    .withV1(stable)
    .withV2({
      connect(stream) {
        const open = app.connect(stream);
        const requests = createDraftRequests(open.client, (id) => sessions.getRequestContext(id));
        const endTurns = (reason: string) => sessions.endTurns(reason);
        connection.peer = { requests, buffers: () => ({}), endTurns };
        connection.createChannel = (session) => sessions.get(session).channel;
        return open;
      },
    });
}

function createDraftAgent(
  connection: AcpConnection,
  sessions: DraftSessions,
  program: ProgramInfo,
): AgentApp {
  const app = agent({ name: "fairlead" });
  app.onRequest("initialize", ({ params }) => {
    connection.client = parseDraftFeatures(params.capabilities);
    return createDraftInitializeResult(program, params.capabilities);
  });
  accountHandlers(app, connection);
  lifecycleHandlers(app, connection, sessions, program);
  managementHandlers(app, connection, sessions);
  promptHandlers(app, connection, sessions);
  return app;
}

function accountHandlers(app: AgentApp, connection: AcpConnection): void {
  const { account } = connection;
  const status = new AuthStatus(connection);
  app.onRequest("auth/login", ({ params }) =>
    status.runAndNotify(() => authenticate(account, params.methodId)),
  );
  app.onRequest("auth/logout", () => status.runAndNotify(() => logOut(account)));
  app.onRequest("auth/status", () => status.get());
  app.onRequest("providers/list", () => listProviders(account));
  app.onRequest("providers/set", ({ params }) => status.runAndNotify(() => setProvider(account, params)));
  app.onRequest("providers/disable", ({ params }) =>
    status.runAndNotify(() => disableProvider(account, params.providerId)),
  );
}

/** Handlers for the unstable methods of the draft. */
function managementHandlers(app: AgentApp, connection: AcpConnection, sessions: DraftSessions): void {
  app.onRequest("session/fork", async ({ params, requestId }) => {
    const { sessionId } = params;
    const session = await forkSession(connection, { ...toSessionParams(params), sessionId }, requestId);
    return { sessionId: session.id, ...sessions.get(session).pickers() };
  });
  app.onRequest("session/set_title", ({ params, requestId }) => setTitle(connection, params, requestId));
  app.onRequest("session/archive", ({ params }) => setArchived(connection, params.sessionId, true));
  app.onRequest("session/unarchive", ({ params }) => setArchived(connection, params.sessionId, false));
  app.onRequest("session/status", async ({ params }) => {
    const status = await getStatus(connection, params.sessionId);
    const view = connection.findView(params.sessionId);
    return { ...status, ...(view && { state: sessions.get(view.session).turns.state }) };
  });
}

function lifecycleHandlers(
  app: AgentApp,
  connection: AcpConnection,
  sessions: DraftSessions,
  program: ProgramInfo,
): void {
  const mcp = createDraftInitializeResult(program, undefined).capabilities?.session?.mcp;

  app.onRequest("session/new", async ({ params, requestId }) => {
    assertSupportedMcpServers(params.mcpServers, mcp);
    const session = await newSession(connection, toSessionParams(params), requestId);
    return { sessionId: session.id, ...sessions.get(session).pickers() };
  });

  app.onRequest("session/resume", async ({ params, requestId, signal }) => {
    assertSupportedMcpServers(params.mcpServers, mcp);
    const { sessionId, replayFrom } = params;
    const sessionParams = { ...toSessionParams(params), sessionId };
    if (replayFrom && replayFrom.type !== "start")
      throw invalidParams(`replayFrom must be of the type "start", not "${replayFrom.type}".`);
    const session = replayFrom
      ? await loadSession(connection, sessionParams, requestId, signal)
      : await resumeSession(connection, sessionParams, requestId);
    const own = sessions.get(session);
    own.sendState();
    return own.pickers();
  });

  app.onRequest("session/list", async ({ params }) => {
    const { cwd, cursor, archived } = params;
    const query = { ...(cwd && { cwd }), ...(cursor && { cursor }), ...(archived && { archived }) };
    return listSessions(connection, query);
  });
  app.onRequest("session/close", ({ params }) => closeSession(connection, params.sessionId));
  app.onRequest("session/delete", ({ params }) => deleteSession(connection, params.sessionId));
  app.onRequest("session/set_config_option", async ({ params, requestId }) => {
    const { session } = await changeOption(connection, params, requestId);
    return afterStored(session, { configOptions: sessions.get(session).pickers().configOptions });
  });
}

function promptHandlers(app: AgentApp, connection: AcpConnection, sessions: DraftSessions): void {
  app.onRequest("session/prompt", async ({ params }) => {
    const { pendingPrompts } = connection;
    if (connection.isBeingSetUp(params.sessionId) && !(await pendingPrompts.wait(params.sessionId)))
      throw cancelledError();
    const view = connection.getView(params.sessionId);
    const blocks = toPromptBlocks(parseContent(params.prompt));
    const messageId = await sessions.get(view.session).turns.prompt(view, params.prompt, blocks);
    return { messageId };
  });
  app.onNotification("session/cancel", ({ params }) => {
    connection.pendingPrompts.cancel(params.sessionId);
    connection.findView(params.sessionId)?.session.cancel();
  });
  app.onRequest("tool_call/cancel", ({ params: { sessionId, toolCallId } }) => {
    const { session } = connection.getView(sessionId);
    const { cancellable } = sessions.get(session).channel;
    return cancelCall(session, "call", toolCallId, cancellable.hasCall(toolCallId));
  });
  app.onRequest("terminal/cancel", ({ params: { sessionId, terminalId } }) => {
    const { session } = connection.getView(sessionId);
    const { cancellable } = sessions.get(session).channel;
    return cancelCall(session, "terminal", terminalId, cancellable.hasTerminal(terminalId));
  });
  app.onRequest("_session/steering", steeringParams, ({ params }) => {
    const answer = steer(connection, params);
    const { turns } = sessions.get(connection.getView(params.sessionId).session);
    if (answer.outcome === "injected") turns.addSteering(params.prompt);
    return answer;
  });
}

/** A terminal ends with its call, whose id it has. */
function cancelCall(session: Session, what: string, id: string, isOffered: boolean): Record<string, never> {
  if (!isOffered || !session.openCalls.cancel(id))
    throw invalidParams(`No cancellable ${what} "${id}" found.`);
  return {};
}

/** Version 2 state per session. */
class DraftSessions {
  readonly #connection: AcpConnection;
  readonly #known = new WeakMap<Session, DraftSession>();

  constructor(connection: AcpConnection) {
    this.#connection = connection;
  }

  get(session: Session): DraftSession {
    const known = this.#known.get(session) ?? new DraftSession(session, this.#connection);
    this.#known.set(session, known);
    return known;
  }

  async endTurns(reason: string): Promise<void> {
    for (const session of this.#connection.openSessions) this.get(session).turns.abort(reason);
  }

  getRequestContext(sessionId: string) {
    const { session } = this.#connection.getView(sessionId);
    return { cwd: session.project.workspace.cwd, turns: this.get(session).turns };
  }
}

class DraftSession {
  readonly channel: DraftChannel;
  readonly turns: Turns;
  readonly #session: Session;
  readonly #connection: AcpConnection;

  constructor(session: Session, connection: AcpConnection) {
    this.#session = session;
    this.#connection = connection;
    this.turns = new Turns((update) => this.channel.sendDraft(update));
    this.channel = new DraftChannel({
      id: session.id,
      cwd: session.project.workspace.cwd,
      outbox: connection.outbox,
      onUserMessage: (id, isSteering) => this.turns.onMessageStored(id, isSteering),
      isOpenCall: (callId) => session.openCalls.has(callId),
    });
  }

  /** Creates the pickers of a response and marks them as known to the client. */
  pickers() {
    const configOptions = toOptions(createClientOptions(this.#session, this.#connection.client));
    const availableCommands = toCommands(listCommands(this.#session));
    this.channel.markKnown({ sessionUpdate: "config_option_update", configOptions });
    this.channel.markKnown({ sessionUpdate: "available_commands_update", availableCommands });
    return { configOptions, availableCommands };
  }

  /** Sends the current state to a client that opened the session, after the queued updates of its turns. */
  sendState(): void {
    this.#connection.findView(this.#session.id)?.state.releaseTurn();
    this.channel.sendDraft({ sessionUpdate: "state_update", ...this.turns.state });
  }
}

function toSessionParams(params: draft.NewSessionRequest): SessionParams {
  const { cwd, additionalDirectories, mcpServers, systemPrompt, _meta } = params;
  return {
    cwd,
    ...(systemPrompt && { systemPrompt }),
    ...(_meta && { _meta }),
    ...(additionalDirectories && { additionalDirectories }),
    mcpServers: (mcpServers ?? []).flatMap(toStableServer),
  };
}

function toStableServer(server: draft.McpServer): StableMcpServer[] {
  if (McpServer.isHttp(server)) {
    const { name, url, headers = [] } = server;
    return [{ type: "http", name, url, headers }];
  }
  if (!McpServer.isStdio(server)) return [];
  const { name, command, args = [], env = [] } = server;
  return [{ name, command, args, env }];
}
