import { agent, type AgentConnection, type AnyMessage } from "@agentclientprotocol/sdk";
import { deferred } from "../base/async.ts";
import type { Log } from "../base/log.ts";
import type { Door, Sessions } from "../session/sessions.ts";
import { abilitiesOf } from "./client-abilities.ts";
import { Connection } from "./connection.ts";
import { withHumanMessage } from "./errors.ts";
import { initializeResult } from "./initialize.ts";
import { lifecycleHandlers } from "./lifecycle.ts";
import { askClient } from "./permissions.ts";
import { promptHandlers } from "./prompt.ts";
import type { Wire } from "./wire.ts";

export interface ServerDeps {
  wire: Wire;
  version: string;
  log: Log;
  openSessions(door: Door): Sessions;
  /** Why no model can be asked, in words for the person; undefined when one can. */
  missingModel(): Promise<string | undefined>;
}

/** Serves one client. `closed` resolves when it is gone; what it still waits for may be answered after that. */
export function serveClient(deps: ServerDeps): { closed: Promise<void> } {
  const { wire, version } = deps;
  let library: AgentConnection | undefined;
  const sessions = deps.openSessions({
    emit: async (event) => connection.findView(event.sessionId)?.receive(event),
    ask: async (question, signal) =>
      library ? askClient(library.client, question, signal) : { reply: "reject" },
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

/** The stream stays open when the client's input ended: the library would forget the requests that still run. */
function streamOver(wire: Wire, end: () => void) {
  const readable = new ReadableStream<AnyMessage>({
    start: (controller) => wire.connect((message) => controller.enqueue(message), end),
  });
  const writable = new WritableStream<AnyMessage>({
    write: (message) => wire.send(withHumanMessage(message)),
  });
  return { readable, writable };
}
