import { serveClient } from "../acp/server.ts";
import type { Wire } from "../acp/wire.ts";
import { App, type Surroundings } from "../app.ts";
import { messageOf } from "../base/errors.ts";

export interface RunningServer {
  /** Resolves when the client is gone. */
  readonly closed: Promise<void>;
  close(): Promise<void>;
  /** Answers what is still open with an error. */
  abandon(reason: string): void;
  report(what: string, error: unknown): void;
}

/** The whole program behind a connection. */
export async function openServer({
  wire,
  ...surroundings
}: Surroundings & { wire: Wire }): Promise<RunningServer> {
  const app = new App(surroundings);
  const { closed } = serveClient({
    wire,
    version: surroundings.version,
    log: app.log,
    openSessions: (door) => app.openSessions(door),
    missingModel: () => app.missingModel(),
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
