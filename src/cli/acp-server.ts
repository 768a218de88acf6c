import { errorFields } from "../base/error-fields.ts";
import { serveClient, type ServerDeps } from "../acp/server.ts";
import type { Account } from "../acp/methods/account.ts";
import type { ProgramInfo } from "../acp/initialize.ts";
import type { Wire } from "../acp/transport/wire.ts";
import { App, type AppOptions } from "../app.ts";
import { orAfter } from "../base/async.ts";
import { keepHeapSmall } from "./heap.ts";

export interface RunningServer {
  /** Resolves when the client is gone. */
  readonly closed: Promise<void>;
  close(): Promise<void>;
  /** Ends the calls that run and answers what is still open with an error; resolves when that is written. */
  abandon(reason: string): Promise<void>;
  report(what: string, error: unknown): void;
}

/** How long each of the last words may take, which go out at once where the client reads. */
const cutOffLimitMs = 10;

/** What the editor may ask of the person's providers and keys. */
function accountOf(app: App): Account {
  const providers = async () => (await app.personalModels()).providers();
  return {
    missingModel: () => app.missingModel(),
    providers,
    removeKeys: () => app.forgetKeys(),
    route: async (id, route) => {
      app.models.routing.set(id, route);
      await app.reroute();
    },
    disable: async (id) => {
      app.models.routing.disable(id);
      await app.reroute();
    },
  };
}

/** The draft of the protocol's next version, where the client asks for it and the person wants it. */
async function draftFor(app: App, wire: Wire): Promise<Pick<ServerDeps, "addDraftVersion">> {
  if (!wire.requestsNewerVersion || !(await app.isProtocolDraftOn())) return {};
  return import("../acp/v2/draft.ts");
}

/** The whole program behind a connection. */
export async function openServer({
  wire,
  program,
  ...surroundings
}: Omit<AppOptions, "version"> & { wire: Wire; program: ProgramInfo }): Promise<RunningServer> {
  const app = new App({ ...surroundings, version: program.version });
  const served = serveClient({
    wire,
    program,
    log: app.log,
    openSessions: (door) => app.openSessions(door),
    account: accountOf(app),
    warmUp: () => app.warmUp(),
    warmUpCalls: () => app.warmUpCalls(),
    settle: keepHeapSmall,
    ...(await draftFor(app, wire)),
  });
  return {
    closed: served.closed,
    close: async () => {
      await app.close();
      await wire.settled();
      await wire.outbox.flush();
    },
    abandon: async (reason) => {
      app.abandon();
      // A client that does not read would be waited for here.
      await orAfter(served.abortTurns(reason), cutOffLimitMs, undefined);
      wire.failUnanswered(reason);
      await orAfter(wire.outbox.flush(), cutOffLimitMs, undefined);
    },
    report: (what, error) => app.log.error(what, errorFields(error)),
  };
}
