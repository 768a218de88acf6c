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

/** The protocol library: it checks and routes what the client sends, and asks the client. */
export interface SdkConnection extends Pick<SessionHost, "ask" | "inquire" | "elicit" | "visited"> {
  /** Takes a message, in its turn. */
  receive(message: AnyMessage): void;
  /** Runs the task once everything that was taken before is with its handler. */
  runInOrder(task: () => void): void;
  /** Calls back once everything that was taken before is with its handler. */
  end(): void;
}

/** Puts the draft of the protocol's next version beside the stable one. */
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
        .catch((error: unknown) => log.warn("nobody was told", errorFields(error)));
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

/** Once the client is `gone` it is not waited for. */
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
 * Runs one task in each round of the event loop. The library takes a message to its handler over a number of promises
 * that differs from method to method, so that of two messages at once the later one could be first.
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

/** The stream stays open when the client's input ended: the library would forget the requests that still run. */
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
