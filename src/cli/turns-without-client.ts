import type { ClientHost } from "../acp/client/client-host.ts";
import type { ProgramInfo } from "../acp/initialize.ts";
import {
  DisconnectedTurns,
  type DisconnectedTurnsDeps,
  type JoinedClient,
} from "../acp/reconnect/disconnected-turns.ts";
import type { SocketPlace } from "../acp/reconnect/session-socket.ts";
import { serveClient, type ServerDeps } from "../acp/server.ts";
import { Wire } from "../acp/transport/wire.ts";
import type { App } from "../app.ts";
import { orAfter } from "../base/async.ts";
import { errorFields } from "../base/error-fields.ts";
import type { Sessions } from "../session/sessions.ts";

export interface TurnsWithoutClientDeps {
  readonly app: App;
  readonly sessions: Sessions;
  readonly host: ClientHost;
  readonly place: SocketPlace;
  readonly program: ProgramInfo;
  readonly account: ServerDeps["account"];
  readonly loadDraft: (app: App, wire: Wire) => Promise<Pick<ServerDeps, "createDraftVersion">>;
}

/** Time for a process that connects to send its first message. */
const firstMessageMs = 5_000;

/** Lets running turns continue after the client disconnected, as the user configured, and serves those who join them. */
export class TurnsWithoutClient {
  readonly #deps: TurnsWithoutClientDeps;

  constructor(deps: TurnsWithoutClientDeps) {
    this.#deps = deps;
  }

  /** Minutes for which turns continue; 0 if they end with their client. */
  async minutes(): Promise<number> {
    const { app } = this.#deps;
    try {
      return await app.keepRunningMinutes();
    } catch (error) {
      app.log.error("setting not read", errorFields(error));
      return 0;
    }
  }

  /** Resolves when the turns have ended and no client is connected. */
  async finish(): Promise<void> {
    const { app, sessions, host, place } = this.#deps;
    const minutes = await this.minutes();
    if (minutes === 0) return;
    const serve: DisconnectedTurnsDeps["serve"] = (socket, onOpened) => this.#serve(socket, onOpened);
    await new DisconnectedTurns({ sessions, host, place, minutes, serve, log: app.log }).run();
  }

  async #serve(...[socket, onOpened]: Parameters<DisconnectedTurnsDeps["serve"]>): Promise<JoinedClient> {
    const { app, sessions, host, program, account, loadDraft } = this.#deps;
    const wire = new Wire({ input: socket, output: socket, program });
    const started = wire.started.then(() => true);
    if (!(await orAfter(started, firstMessageMs, false))) throw new Error("no message arrived");
    const opened = new Set<string>();
    return serveClient({
      wire,
      program,
      log: app.log,
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
      ...(await loadDraft(app, wire)),
    });
  }
}
