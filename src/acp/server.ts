import { deferred } from "../base/async.ts";
import type { Log } from "../base/log.ts";
import type { SessionHost } from "../session/session-host.ts";
import type { Sessions } from "../session/sessions.ts";
import type { Account } from "./methods/account.ts";
import { AcpConnection } from "./connection.ts";
import type { ProgramInfo } from "./initialize.ts";
import { lazyBuffers } from "./client/editor-files.ts";
import type { AddDraftVersion } from "./sdk-connection.ts";
import { RequestDispatcher } from "./request-dispatcher.ts";
import type { Wire } from "./transport/wire.ts";

export interface ServerDeps {
  wire: Wire;
  program: ProgramInfo;
  log: Log;
  openSessions(host: SessionHost): Sessions;
  account: Account;
  /** Adds the draft of the next protocol version; without it only the stable version is supported. */
  addDraftVersion?: AddDraftVersion;
  /** Loads modules for the first prompt. Must not throw. */
  warmUp: () => Promise<void>;
  /** Loads modules for the first tool call. Must not throw. */
  warmUpCalls: () => Promise<void>;
  /** Called once: after the first turn, or when the warm-up time has passed. */
  settle: () => void;
}

export interface AcpServer {
  /** Resolves when the client disconnected; open requests may be answered after that. */
  readonly closed: Promise<void>;
  /** Reports all running turns as ended; used when the process must exit. */
  abortTurns(reason: string): Promise<void>;
}

/** Serves one client. */
export function serveClient(deps: ServerDeps): AcpServer {
  const { wire, program, log, addDraftVersion } = deps;
  const sdk = () => dispatcher.sdk();
  const sessions = deps.openSessions({
    emit: (event) => connection.findView(event.sessionId)?.receive(event),
    waitUntilReady: () => wire.outbox.waitUntilReady(),
    ask: async (question, signal) => {
      const client = await sdk();
      if (client === undefined) throw dispatcher.loadError;
      const { callId, title, sessionId, askedUnder = sessionId } = question;
      await connection.findView(askedUnder)?.announce(callId, title);
      return client.ask(question, signal);
    },
    inquire: async (sessionId, inquiry, signal) => {
      const client = await sdk();
      if (client === undefined) return { outcome: "unavailable", problem: dispatcher.loadError.message };
      await connection.findView(sessionId)?.announce(inquiry.callId);
      return client.inquire(sessionId, inquiry, signal);
    },
    elicit: async (sessionId, elicitation, signal) => {
      const client = await sdk();
      if (client === undefined) return { outcome: "unavailable" };
      if (elicitation.callId !== undefined)
        await connection.findView(sessionId)?.announce(elicitation.callId);
      return client.elicit(sessionId, elicitation, signal);
    },
    elicitationAbilities: () => ({ forms: connection.client.forms, urls: connection.client.urls }),
    visited: (elicitationId) => void sdk().then((open) => open?.visited(elicitationId)),
    buffers: (sessionId) =>
      connection.peer?.buffers(sessionId) ??
      lazyBuffers(connection.client, async () => {
        if ((await sdk()) === undefined) throw dispatcher.loadError;
        return connection.peer?.buffers(sessionId) ?? {};
      }),
  });
  const connection = new AcpConnection({ sessions, outbox: wire.outbox, account: deps.account, log });
  const closed = deferred<void>();
  const dispatcher = new RequestDispatcher({
    wire,
    connection,
    log,
    loadSdk: async () => {
      const { connectSdk } = await import("./sdk-connection.ts");
      const end = () => closed.resolve();
      return connectSdk({ wire, connection, program, log, addDraftVersion, end });
    },
    warmUp: () => deps.warmUp(),
    warmUpCalls: () => deps.warmUpCalls(),
    settle: () => deps.settle(),
    end: () => closed.resolve(),
  });
  wire.connect(
    (message) => dispatcher.receive(message),
    () => dispatcher.end(),
  );
  return { closed: closed.promise, abortTurns: (reason) => connection.abortTurns(reason) };
}
