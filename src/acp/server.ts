import { agent, type AgentConnection, type AnyMessage } from "@agentclientprotocol/sdk/unstable";
import { deferred } from "../base/async.ts";
import type { Log } from "../base/log.ts";
import type { Door, Sessions } from "../session/sessions.ts";
import { abilitiesOf } from "./client-abilities.ts";
import { Connection } from "./connection.ts";
import { editorBuffers } from "./editor-files.ts";
import { withHumanMessage } from "./errors.ts";
import { initializeResult } from "./initialize.ts";
import { lifecycleHandlers } from "./lifecycle.ts";
import { askClient } from "./permissions.ts";
import { promptHandlers } from "./prompt.ts";
import { inquireClient } from "./questions.ts";
import type { Wire } from "./wire.ts";

export interface ServerDeps {
  wire: Wire;
  version: string;
  log: Log;
  openSessions(door: Door): Sessions;
  /** Why no model can be asked, in words for the person; undefined when one can. */
  missingModel: () => Promise<string | undefined>;
}

/** Serves one client. `closed` resolves when it is gone; what it still waits for may be answered after that. */
export function serveClient(deps: ServerDeps): { closed: Promise<void> } {
  const { wire, version } = deps;
  let library: AgentConnection | undefined;
  const sessions = deps.openSessions({
    emit: async (event) => connection.findView(event.sessionId)?.receive(event),
    ask: async (question, signal) => {
      if (library === undefined) return { reply: "reject" };
      await connection.findView(question.askedUnder ?? question.sessionId)?.announce(question.callId);
      return askClient(library.client, question, connection.client, signal);
    },
    inquire: async (sessionId, inquiry, signal) => {
      if (library === undefined) return { outcome: "unavailable" };
      const asking = { client: library.client, abilities: connection.client, log: deps.log };
      return inquireClient(asking, sessionId, inquiry, signal);
    },
    buffers: (sessionId) => (library ? editorBuffers(library.client, connection.client, sessionId) : {}),
  });
  const connection = new Connection({ sessions, outbox: wire.outbox, missingModel: deps.missingModel });
  const app = agent({ name: "fairlead" });
  app.onRequest("initialize", ({ params }) => {
    connection.client = abilitiesOf(params);
    return initializeResult(version);
  });
  lifecycleHandlers(app, connection);
  promptHandlers(app, connection);
  const closed = deferred<void>();
  library = app.connect(streamOver(wire, () => closed.resolve()));
  return { closed: closed.promise };
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
