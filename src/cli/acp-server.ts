import { serveClient, type ServerDeps } from "../acp/server.ts";
import type { Account } from "../acp/account.ts";
import type { Program } from "../acp/initialize.ts";
import type { Wire } from "../acp/wire.ts";
import { App, type Surroundings } from "../app.ts";
import { messageOf } from "../base/errors.ts";
import { keepHeapSmall } from "./heap.ts";

export interface RunningServer {
  /** Resolves when the client is gone. */
  readonly closed: Promise<void>;
  close(): Promise<void>;
  /** Answers what is still open with an error. */
  abandon(reason: string): void;
  report(what: string, error: unknown): void;
}

/** What the editor may ask of the person's providers and keys. */
function accountOf(app: App): Account {
  const providers = async () => (await app.personalModels()).providers();
  return {
    missingModel: () => app.missingModel(),
    providers,
    forgetKeys: () => app.forgetKeys(),
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
async function draftFor(app: App, wire: Wire): Promise<Pick<ServerDeps, "withDraft">> {
  if (!wire.asksForNewer || !(await app.isProtocolDraftOn())) return {};
  return import("../acp/v2/draft.ts");
}

/** The whole program behind a connection. */
export async function openServer({
  wire,
  program,
  ...surroundings
}: Omit<Surroundings, "version"> & { wire: Wire; program: Program }): Promise<RunningServer> {
  const app = new App({ ...surroundings, version: program.version });
  const { closed } = serveClient({
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
    closed,
    close: async () => {
      await app.close();
      await wire.settled();
      await wire.outbox.flush();
    },
    abandon: (reason) => {
      app.abandon();
      wire.abandon(reason);
    },
    report: (what, error) => app.log.error(what, { error: messageOf(error) }),
  };
}
