import { errorFields } from "../base/error-fields.ts";
import { agent, type AgentApp, type AnyMessage } from "@agentclientprotocol/sdk/unstable";
import type { AgentConnector } from "@agentclientprotocol/sdk/experimental/v2/unstable";
import type { Log } from "../base/log.ts";
import type { SessionHost } from "../session/session-host.ts";
import { accountHandlers } from "./methods/account-handlers.ts";
import { createClientRequests } from "./client/client-requests.ts";
import { parseClientFeatures } from "./client-capabilities.ts";
import type { AcpConnection, Peer } from "./connection.ts";
import { editorBuffers } from "./client/editor-files.ts";
import { elicitFromClient } from "./client/elicitations.ts";
import { createInitializeResult, type ProgramInfo } from "./initialize.ts";
import { clarifyError } from "./sdk-errors.ts";
import { lifecycleHandlers } from "./methods/lifecycle.ts";
import { managementHandlers } from "./methods/management.ts";
import { requestPermission } from "./client/permissions.ts";
import { promptHandlers } from "./methods/prompt.ts";
import { askQuestions } from "./client/questions.ts";
import type { Wire } from "./transport/wire.ts";

/** The protocol SDK: validates and routes the client's messages, and sends requests to the client. */
export interface SdkConnection extends Pick<SessionHost, "ask" | "inquire" | "elicit" | "visited"> {
  receive(message: AnyMessage): void;
  /** Runs the task after all earlier messages have reached their handlers. */
  runInOrder(task: () => void): void;
  /** Ends the connection after all earlier messages have reached their handlers. */
  end(): void;
}

/** Adds the draft of the next protocol version to the stable agent. */
export type AddDraftVersion = (
  stable: AgentConnector,
  connection: AcpConnection,
  program: ProgramInfo,
) => AgentConnector;

export interface SdkDeps {
  wire: Wire;
  connection: AcpConnection;
  program: ProgramInfo;
  log: Log;
  addDraftVersion: AddDraftVersion | undefined;
  end: () => void;
}

export function connectSdk(deps: SdkDeps): SdkConnection {
  const { wire, connection, program, log, addDraftVersion, end } = deps;
  const gone = new AbortController();
  const stable = createConnector(createStableAgent(connection, program), connection, gone.signal);
  const { stream, receive } = createStream(wire);
  (addDraftVersion?.(stable, connection, program) ?? stable).connect(stream);
  const inOrder = createOrderedRunner();
  const asking = (peer: Peer) => ({ requests: peer.requests, features: connection.client, log });
  return {
    receive,
    runInOrder: inOrder,
    end: () =>
      inOrder(() => {
        gone.abort();
        end();
      }),
    ask: async (question, signal) => {
      const { peer, client } = connection;
      if (peer === undefined) throw new Error("The client is gone.");
      const paths = connection.getPaths(question.askedUnder ?? question.sessionId);
      return requestPermission(peer.requests, question, { features: client, paths }, signal);
    },
    inquire: async (sessionId, inquiry, signal) => {
      const { peer } = connection;
      return peer ? askQuestions(asking(peer), sessionId, inquiry, signal) : { outcome: "unavailable" };
    },
    elicit: async (sessionId, elicitation, signal) => {
      const { peer } = connection;
      if (peer === undefined) return { outcome: "unavailable" };
      return elicitFromClient(asking(peer), sessionId, elicitation, signal);
    },
    visited: (elicitationId) => {
      connection.peer?.requests
        .completeElicitation(elicitationId)
        .catch((error: unknown) => log.warn("elicitation completion not sent", errorFields(error)));
    },
  };
}

function createStableAgent(connection: AcpConnection, program: ProgramInfo): AgentApp {
  const app = agent({ name: "fairlead" });
  app.onRequest("initialize", ({ params }) => {
    connection.client = parseClientFeatures(params);
    return createInitializeResult(program, params);
  });
  accountHandlers(app, connection);
  lifecycleHandlers(app, connection);
  managementHandlers(app, connection);
  promptHandlers(app, connection);
  return app;
}

/** Connects the stable agent and sets the connection's peer. File requests are aborted by `gone`. */
function createConnector(app: AgentApp, connection: AcpConnection, gone: AbortSignal): AgentConnector {
  return {
    connect(stream) {
      const open = app.connect(stream);
      connection.peer = {
        requests: createClientRequests(open.client),
        buffers: (sessionId) => {
          const pathOf = (path: string) => connection.getPaths(sessionId).pathToOpen(path);
          return editorBuffers({ client: open.client, gone, sessionId, pathOf }, connection.client);
        },
      };
      return open;
    },
  };
}

/**
 * Runs one task per event loop iteration. The SDK awaits a different number of promises for each method before it calls
 * the handler, so two messages at once could be handled in the wrong order.
 */
function createOrderedRunner(): (task: () => void) => void {
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

/** Creates the SDK's streams. They remain open after the client's input ended, or the SDK would drop running requests. */
function createStream(wire: Wire) {
  let receive: (message: AnyMessage) => void = () => undefined;
  const readable = new ReadableStream<AnyMessage>({
    start: (controller) => {
      receive = (message) => controller.enqueue(message);
    },
  });
  const writable = new WritableStream<AnyMessage>({
    write: (message) => wire.sendFromSdk(clarifyError(message)),
  });
  return { stream: { readable, writable }, receive };
}
