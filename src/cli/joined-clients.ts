import type { ProgramInfo } from "../acp/initialize.ts";
import {
  DisconnectedTurns,
  type DisconnectedTurnsDeps,
  type JoinedClient,
} from "../acp/reconnect/disconnected-turns.ts";
import type { SwitchableHost } from "../acp/reconnect/switchable-host.ts";
import { serveClient, type ServerDeps } from "../acp/server.ts";
import { Wire } from "../acp/transport/wire.ts";
import { orAfter } from "../base/async.ts";
import type { Sessions } from "../session/sessions.ts";

export interface JoinedClientsDeps extends Pick<DisconnectedTurnsDeps, "place" | "minutes" | "log"> {
  readonly sessions: Sessions;
  readonly host: SwitchableHost;
  readonly program: ProgramInfo;
  readonly account: ServerDeps["account"];
  readonly loadDraft: (wire: Wire) => Promise<Pick<ServerDeps, "createDraftVersion">>;
}

/** Time for a process that connects to send its first message. */
const firstMessageMs = 5_000;

/** Waits until the running turns have ended, and serves the clients that join them. */
export async function finishTurns(deps: JoinedClientsDeps): Promise<void> {
  const serve: DisconnectedTurnsDeps["serve"] = (socket, onOpened) => serveJoined(deps, socket, onOpened);
  await new DisconnectedTurns({ ...deps, serve }).run();
}

async function serveJoined(
  { sessions, host, program, account, loadDraft, log }: JoinedClientsDeps,
  ...[socket, onOpened]: Parameters<DisconnectedTurnsDeps["serve"]>
): Promise<JoinedClient> {
  const wire = new Wire({ input: socket, output: socket, program });
  const started = wire.started.then(() => true);
  if (!(await orAfter(started, firstMessageMs, false))) throw new Error("no message arrived");
  const opened = new Set<string>();
  return serveClient({
    wire,
    program,
    log,
    openSessions: (client) => {
      host.connect(client, (sessionId) => opened.has(sessionId));
      return sessions;
    },
    account,
    warmUp: async () => {},
    warmUpCalls: async () => {},
    settle: () => {},
    onOpened: (sessionId) => {
      opened.add(sessionId);
      onOpened(sessionId);
    },
    ...(await loadDraft(wire)),
  });
}
