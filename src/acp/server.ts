import { agent, type AgentApp, type AnyMessage } from "@agentclientprotocol/sdk/unstable";
import type { AgentConnector } from "@agentclientprotocol/sdk/experimental/v2";
import { deferred } from "../base/async.ts";
import { messageOf } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import type { Door, Sessions } from "../session/sessions.ts";
import { accountHandlers, type Account } from "./account.ts";
import { askerOf } from "./asker.ts";
import { abilitiesOf } from "./client-abilities.ts";
import { Connection } from "./connection.ts";
import { editorBuffers } from "./editor-files.ts";
import { elicitFromClient } from "./elicitations.ts";
import { withHumanMessage } from "./errors.ts";
import { initializeResult, type Program } from "./initialize.ts";
import { lifecycleHandlers } from "./lifecycle.ts";
import { managementHandlers } from "./management.ts";
import { askClient } from "./permissions.ts";
import { promptHandlers } from "./prompt.ts";
import { inquireClient } from "./questions.ts";
import type { Wire } from "./wire.ts";

export interface ServerDeps {
  wire: Wire;
  program: Program;
  log: Log;
  openSessions(door: Door): Sessions;
  account: Account;
  /** Adds the draft of the protocol's next version; without it only the stable one is spoken. */
  withDraft?: (stable: AgentConnector, connection: Connection, program: Program) => AgentConnector;
}

/** Serves one client. `closed` resolves when it is gone; what it still waits for may be answered after that. */
export function serveClient(deps: ServerDeps): { closed: Promise<void> } {
  const { wire, program, log } = deps;
  const sessions = deps.openSessions({
    emit: async (event) => connection.findView(event.sessionId)?.receive(event),
    ask: async (question, signal) => {
      const { peer, client } = connection;
      if (peer === undefined) return { reply: "reject" };
      await connection.findView(question.askedUnder ?? question.sessionId)?.announce(question.callId);
      return askClient(peer.asker, question, client, signal);
    },
    inquire: async (sessionId, inquiry, signal) => {
      const { peer, client } = connection;
      if (peer === undefined) return { outcome: "unavailable" };
      return inquireClient({ asker: peer.asker, abilities: client, log }, sessionId, inquiry, signal);
    },
    elicit: async (sessionId, elicitation, signal) => {
      const { peer, client } = connection;
      if (peer === undefined) return { outcome: "unavailable" };
      return elicitFromClient({ asker: peer.asker, abilities: client, log }, sessionId, elicitation, signal);
    },
    elicitationAbilities: () => ({ forms: connection.client.forms, urls: connection.client.urls }),
    visited: (elicitationId) => {
      connection.peer?.asker
        .visited(elicitationId)
        .catch((error: unknown) => log.warn("nobody was told", { error: messageOf(error) }));
    },
    buffers: (sessionId) => connection.peer?.buffers(sessionId) ?? {},
  });
  const connection = new Connection({ sessions, outbox: wire.outbox, account: deps.account });
  const stable = connectorOf(stableAgent(connection, program), connection);
  const closed = deferred<void>();
  const connector = deps.withDraft?.(stable, connection, program) ?? stable;
  connector.connect(streamOver(wire, () => closed.resolve()));
  return { closed: closed.promise };
}

function stableAgent(connection: Connection, program: Program): AgentApp {
  const app = agent({ name: "fairlead" });
  app.onRequest("initialize", ({ params }) => {
    connection.client = abilitiesOf(params);
    return initializeResult(program, params);
  });
  accountHandlers(app, connection);
  lifecycleHandlers(app, connection);
  managementHandlers(app, connection);
  promptHandlers(app, connection);
  return app;
}

function connectorOf(app: AgentApp, connection: Connection): AgentConnector {
  return {
    connect(stream) {
      const open = app.connect(stream);
      connection.peer = {
        asker: askerOf(open.client),
        buffers: (sessionId) => editorBuffers(open.client, connection.client, sessionId),
      };
      return open;
    },
  };
}

/**
 * Runs one task in each round of the event loop. The library takes a message to its handler over a number of promises
 * that differs from method to method, so that of two messages at once the later one could be first.
 */
function oneByOne(): (task: () => void) => void {
  const waiting: (() => void)[] = [];
  let isRunning = false;
  const runNext = () => {
    const task = waiting.shift();
    isRunning = task !== undefined;
    if (task === undefined) return;
    task();
    setImmediate(runNext);
  };
  return (task) => {
    waiting.push(task);
    if (!isRunning) runNext();
  };
}

/** The stream stays open when the client's input ended: the library would forget the requests that still run. */
function streamOver(wire: Wire, end: () => void) {
  const inOrder = oneByOne();
  const readable = new ReadableStream<AnyMessage>({
    start: (controller) =>
      wire.connect(
        (message) => inOrder(() => controller.enqueue(message)),
        () => inOrder(end),
      ),
  });
  const writable = new WritableStream<AnyMessage>({
    write: (message) => wire.send(withHumanMessage(message)),
  });
  return { readable, writable };
}
