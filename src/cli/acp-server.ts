import { errorFields } from "../base/error-fields.ts";
import { ClientHost } from "../acp/client/client-host.ts";
import { serveClient, type ServerDeps } from "../acp/server.ts";
import type { Account } from "../acp/methods/account.ts";
import type { ProgramInfo } from "../acp/initialize.ts";
import type { Wire } from "../acp/transport/wire.ts";
import { App, type AppOptions } from "../app.ts";
import { orAfter } from "../base/async.ts";
import { limitHeapGrowth } from "./heap.ts";

export interface RunningServer {
  /** Resolves when the client is gone, and no turn continues without it. */
  readonly closed: Promise<unknown>;
  /** Disconnects the client if its turn continues without it. Returns whether one does. */
  hangUp(): Promise<boolean>;
  close(): Promise<void>;
  /** Kills running commands and answers open requests with an error. Resolves when the answers are written. */
  abandon(reason: string): Promise<void>;
  logError(event: string, error: unknown): void;
}

/** Limit for each write of {@link RunningServer.abandon}, in case the client no longer reads. */
const abandonLimitMs = 10;

/** The editor's access to the user's providers and keys. */
function createAccount(app: App): Account {
  const { routing } = app.models;
  return {
    missingModel: () => app.missingModel(),
    providers: async () => {
      const usable = (await app.personalModels()).providers();
      return usable.map((provider) => ({ ...provider, apiType: routing.apiTypeOf(provider.id) }));
    },
    disabledProviders: () => routing.disabled,
    removeKeys: () => app.forgetKeys(),
    route: async (id, route) => {
      routing.set(id, route);
      await app.reroute();
    },
    disable: async (id) => {
      routing.disable(id);
      await app.reroute();
    },
  };
}

/** Loads the draft of the protocol's next version if the client asks for it, unless the user disabled it. */
async function loadDraft(app: App, wire: Wire): Promise<Pick<ServerDeps, "createDraftVersion">> {
  if (!wire.requestsNewerVersion || !(await app.isProtocolDraftOn())) return {};
  return import("../acp/v2/draft.ts");
}

/** Creates the app and serves it on a connection. */
export async function openServer({
  wire,
  program,
  ...options
}: Omit<AppOptions, "version"> & { wire: Wire; program: ProgramInfo }): Promise<RunningServer> {
  const app = new App({ ...options, version: program.version });
  const host = new ClientHost(app.log);
  const sessions = app.openSessions(host);
  const place = { folder: app.folders.runtime, platform: options.platform };
  const account = createAccount(app);
  const served = serveClient({
    wire,
    program,
    log: app.log,
    openSessions: (client) => {
      host.connect(client);
      return sessions;
    },
    account,
    warmUp: () => app.warmUp(),
    warmUpCalls: () => app.warmUpCalls(),
    settle: () => void limitHeapGrowth(),
    explainDefaults: async (view, client) => {
      const { explainDefaults } = await import("../acp/explain-defaults.ts");
      await explainDefaults(view, client, app);
    },
    loadJoinedSessions: async (client, requester) => {
      const { JoinedSessions } = await import("../acp/reconnect/joined-sessions.ts");
      return new JoinedSessions({ place, wire: client, requester, log: app.log });
    },
    ...(await loadDraft(app, wire)),
  });
  const isBusy = () => sessions.allLive.some((session) => session.isBusy);
  const loadTurns = async () => {
    const { TurnsWithoutClient } = await import("./turns-without-client.ts");
    return new TurnsWithoutClient({ app, sessions, host, program, place, account, loadDraft });
  };
  return {
    closed: served.closed.then(async () => isBusy() && (await loadTurns()).finish()),
    hangUp: async () => {
      const goesOn = isBusy() && (await (await loadTurns()).minutes()) > 0;
      if (goesOn) wire.outbox.close();
      return goesOn;
    },
    close: async () => {
      await app.close();
      await wire.settled();
      await wire.outbox.flush();
    },
    abandon: async (reason) => {
      app.abandon();
      await orAfter(served.abortTurns(reason), abandonLimitMs, undefined);
      wire.failUnanswered(reason);
      await orAfter(wire.outbox.flush(), abandonLimitMs, undefined);
    },
    logError: (event, error) => app.log.error(event, errorFields(error)),
  };
}
