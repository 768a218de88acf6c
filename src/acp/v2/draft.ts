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
import { optionsFor } from "../view/config-options.ts";
import type { Connection } from "../connection.ts";
import { toPromptBlocks } from "../view/content.ts";
import { invalidParams } from "../errors.ts";
import type { Program } from "../initialize.ts";
import {
  changeOption,
  closeSession,
  deleteSession,
  listSessions,
  loadSession,
  newSession,
  type SessionParams,
  resumeSession,
  whenStored,
} from "../methods/lifecycle.ts";
import { forkSession, setArchived, setTitle, statusOf } from "../methods/management.ts";
import { parseContent } from "../methods/parse-content.ts";
import { steer, steeringParams } from "../methods/prompt.ts";
import { commandsOf } from "../view/updates.ts";
import { draftAsker } from "./asker.ts";
import { DraftChannel } from "./channel.ts";
import { toCommands, toOptions } from "./convert.ts";
import { draftAbilities, draftInitializeResult } from "./initialize.ts";
import { cancelledBefore, Turns } from "./turns.ts";

/** Speaks version 2 with clients that ask for it, and the stable version with all others. */
export function withDraft(stable: AgentConnector, connection: Connection, program: Program): AgentConnector {
  const sessions = new DraftSessions(connection);
  const app = draftAgent(connection, sessions, program);
  return agentProtocolRouter()
    .withV1(stable)
    .withV2({
      connect(stream) {
        const open = app.connect(stream);
        const asker = draftAsker(open.client, (id) => sessions.asked(id));
        const endTurns = (reason: string) => sessions.endTurns(reason);
        connection.peer = { asker, buffers: () => ({}), endTurns };
        connection.openChannel = (session) => sessions.of(session).channel;
        return open;
      },
    });
}

function draftAgent(connection: Connection, sessions: DraftSessions, program: Program): AgentApp {
  const app = agent({ name: "fairlead" });
  app.onRequest("initialize", ({ params }) => {
    connection.client = draftAbilities(params.capabilities);
    return draftInitializeResult(program, params.capabilities);
  });
  accountHandlers(app, connection);
  lifecycleHandlers(app, connection, sessions, program);
  managementHandlers(app, connection, sessions);
  promptHandlers(app, connection, sessions);
  return app;
}

function accountHandlers(app: AgentApp, connection: Connection): void {
  const { account } = connection;
  const status = new AuthStatus(connection);
  app.onRequest("auth/login", ({ params }) => status.through(() => authenticate(account, params.methodId)));
  app.onRequest("auth/logout", () => status.through(() => logOut(account)));
  app.onRequest("auth/status", () => status.answer());
  app.onRequest("providers/list", () => listProviders(account));
  app.onRequest("providers/set", ({ params }) => status.through(() => setProvider(account, params)));
  app.onRequest("providers/disable", ({ params }) =>
    status.through(() => disableProvider(account, params.providerId)),
  );
}

/** What is not in the draft's stable part. */
function managementHandlers(app: AgentApp, connection: Connection, sessions: DraftSessions): void {
  app.onRequest("session/fork", async ({ params, requestId }) => {
    const { sessionId } = params;
    const session = await forkSession(connection, { ...toOpening(params), sessionId }, requestId);
    return { sessionId: session.id, ...sessions.of(session).pickers() };
  });
  app.onRequest("session/set_title", ({ params, requestId }) => setTitle(connection, params, requestId));
  app.onRequest("session/archive", ({ params }) => setArchived(connection, params.sessionId, true));
  app.onRequest("session/unarchive", ({ params }) => setArchived(connection, params.sessionId, false));
  app.onRequest("session/status", async ({ params }) => {
    const status = await statusOf(connection, params.sessionId);
    const view = connection.findView(params.sessionId);
    return { ...status, ...(view && { state: sessions.of(view.session).turns.state }) };
  });
}

function lifecycleHandlers(
  app: AgentApp,
  connection: Connection,
  sessions: DraftSessions,
  program: Program,
): void {
  const mcp = draftInitializeResult(program, undefined).capabilities?.session?.mcp;

  app.onRequest("session/new", async ({ params, requestId }) => {
    assertSupportedMcpServers(params.mcpServers, mcp);
    const session = await newSession(connection, toOpening(params), requestId);
    return { sessionId: session.id, ...sessions.of(session).pickers() };
  });

  app.onRequest("session/resume", async ({ params, requestId, signal }) => {
    assertSupportedMcpServers(params.mcpServers, mcp);
    const { sessionId, replayFrom } = params;
    const opening = { ...toOpening(params), sessionId };
    if (replayFrom && replayFrom.type !== "start")
      throw invalidParams(`replayFrom must be of the type "start", not "${replayFrom.type}".`);
    const session = replayFrom
      ? await loadSession(connection, opening, requestId, signal)
      : await resumeSession(connection, opening, requestId);
    const own = sessions.of(session);
    await own.snapshot();
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
    return whenStored(session, { configOptions: sessions.of(session).pickers().configOptions });
  });
}

function promptHandlers(app: AgentApp, connection: Connection, sessions: DraftSessions): void {
  app.onRequest("session/prompt", async ({ params }) => {
    const { earlyPrompts } = connection;
    if (connection.isBeingSetUp(params.sessionId) && !(await earlyPrompts.wait(params.sessionId)))
      throw cancelledBefore();
    const view = connection.view(params.sessionId);
    const blocks = toPromptBlocks(parseContent(params.prompt));
    const messageId = await sessions.of(view.session).turns.prompt(view, params.prompt, blocks);
    return { messageId };
  });
  app.onNotification("session/cancel", ({ params }) => {
    connection.earlyPrompts.cancel(params.sessionId);
    connection.findView(params.sessionId)?.session.cancel();
  });
  app.onRequest("tool_call/cancel", ({ params: { sessionId, toolCallId } }) => {
    const { session } = connection.view(sessionId);
    const { cancellable } = sessions.of(session).channel;
    return cancelCall(session, "call", toolCallId, cancellable.hasCall(toolCallId));
  });
  app.onRequest("terminal/cancel", ({ params: { sessionId, terminalId } }) => {
    const { session } = connection.view(sessionId);
    const { cancellable } = sessions.of(session).channel;
    return cancelCall(session, "terminal", terminalId, cancellable.hasTerminal(terminalId));
  });
  app.onRequest("_session/steering", steeringParams, ({ params }) => {
    const answer = steer(connection, params);
    const { turns } = sessions.of(connection.view(params.sessionId).session);
    if (answer.outcome === "injected") turns.steered(params.prompt);
    return answer;
  });
}

/** A terminal ends with its call, whose id it has. */
function cancelCall(session: Session, what: string, id: string, isOffered: boolean): Record<string, never> {
  if (!isOffered || !session.openCalls.cancel(id))
    throw invalidParams(`There is no ${what} "${id}" that can be cancelled.`);
  return {};
}

/** What version 2 knows of each session beside its view. */
class DraftSessions {
  readonly #connection: Connection;
  readonly #known = new WeakMap<Session, DraftSession>();

  constructor(connection: Connection) {
    this.#connection = connection;
  }

  of(session: Session): DraftSession {
    const known = this.#known.get(session) ?? new DraftSession(session, this.#connection);
    this.#known.set(session, known);
    return known;
  }

  async endTurns(reason: string): Promise<void> {
    await Promise.all(
      this.#connection.openSessions.map((session) => this.of(session).turns.breakOff(reason)),
    );
  }

  asked(sessionId: string) {
    const { session } = this.#connection.view(sessionId);
    return { cwd: session.project.workspace.cwd, turns: this.of(session).turns };
  }
}

class DraftSession {
  readonly channel: DraftChannel;
  readonly turns: Turns;
  readonly #session: Session;
  readonly #connection: Connection;

  constructor(session: Session, connection: Connection) {
    this.#session = session;
    this.#connection = connection;
    this.turns = new Turns((update) => this.channel.tell(update));
    this.channel = new DraftChannel({
      id: session.id,
      cwd: session.project.workspace.cwd,
      outbox: connection.outbox,
      onUserMessage: (id, isSteering) => this.turns.placed(id, isSteering),
      isOpenCall: (callId) => session.openCalls.has(callId),
    });
  }

  /** The pickers as an answer carries them. */
  pickers() {
    const configOptions = toOptions(optionsFor(this.#session, this.#connection.client));
    const availableCommands = toCommands(commandsOf(this.#session));
    this.channel.note({ sessionUpdate: "config_option_update", configOptions });
    this.channel.note({ sessionUpdate: "available_commands_update", availableCommands });
    return { configOptions, availableCommands };
  }

  /** Tells how things stand, for a client that has just opened the session, behind what is held back of its turns. */
  async snapshot(): Promise<void> {
    await this.#connection.findView(this.#session.id)?.updates.releaseOfTurn();
    await this.channel.tell({ sessionUpdate: "state_update", ...this.turns.state });
  }
}

function toOpening(params: draft.NewSessionRequest): SessionParams {
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
