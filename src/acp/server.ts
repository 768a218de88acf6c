import { agent, type AgentConnection, type AnyMessage } from "@agentclientprotocol/sdk";
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

/** Serves one client. Resolves `closed` when it is gone. */
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
  library = app.connect(streamOver(wire));
  return { closed: library.closed };
}

function streamOver(wire: Wire) {
  const readable = new ReadableStream<AnyMessage>({
    start: (controller) => {
      let open = true;
      const end = () => {
        if (open) controller.close();
        open = false;
      };
      wire.connect((message) => controller.enqueue(message), end);
    },
  });
  const writable = new WritableStream<AnyMessage>({
    write: (message) => wire.send(withHumanMessage(message)),
  });
  return { readable, writable };
}
