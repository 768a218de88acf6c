import { deferred } from "../base/async.ts";
import type { Log } from "../base/log.ts";
import type { SessionHost } from "../session/session-host.ts";
import type { Sessions } from "../session/sessions.ts";
import type { Account } from "./methods/account.ts";
import { Connection } from "./connection.ts";
import type { Program } from "./initialize.ts";
import { lateBuffers } from "./client/editor-files.ts";
import type { WithDraft } from "./sdk-connection.ts";
import { RequestDispatcher } from "./request-dispatcher.ts";
import type { Wire } from "./transport/wire.ts";

export interface ServerDeps {
  wire: Wire;
  program: Program;
  log: Log;
  openSessions(door: SessionHost): Sessions;
  account: Account;
  /** Adds the draft of the protocol's next version; without it only the stable one is spoken. */
  withDraft?: WithDraft;
  /** Loads what a first prompt needs. Must not throw. */
  warmUp: () => Promise<void>;
  /** Loads what a first call of a tool needs. Must not throw. */
  warmUpCalls: () => Promise<void>;
  /** Called when a first prompt has had its time. */
  settle: () => void;
}

export interface Served {
  /** Resolves when the client is gone; what it still waits for may be answered after that. */
  readonly closed: Promise<void>;
  /** Ends on the wire what runs in any session, for a program that cannot wait. */
  cutOff(reason: string): Promise<void>;
}

/** Serves one client. */
export function serveClient(deps: ServerDeps): Served {
  const { wire, program, log, withDraft } = deps;
  const library = () => reception.library();
  const sessions = deps.openSessions({
    emit: (event) => connection.findView(event.sessionId)?.receive(event),
    ask: async (question, signal) => {
      const asking = await library();
      if (asking === undefined) throw reception.problem;
      const { callId, title, sessionId, askedUnder = sessionId } = question;
      await connection.findView(askedUnder)?.announce(callId, title);
      return asking.ask(question, signal);
    },
    inquire: async (sessionId, inquiry, signal) => {
      const asking = await library();
      if (asking === undefined) return { outcome: "unavailable", problem: reception.problem.message };
      await connection.findView(sessionId)?.announce(inquiry.callId);
      return asking.inquire(sessionId, inquiry, signal);
    },
    elicit: async (sessionId, elicitation, signal) => {
      const asking = await library();
      if (asking === undefined) return { outcome: "unavailable" };
      if (elicitation.callId !== undefined)
        await connection.findView(sessionId)?.announce(elicitation.callId);
      return asking.elicit(sessionId, elicitation, signal);
    },
    elicitationAbilities: () => ({ forms: connection.client.forms, urls: connection.client.urls }),
    visited: (elicitationId) => void library().then((open) => open?.visited(elicitationId)),
    buffers: (sessionId) =>
      connection.peer?.buffers(sessionId) ??
      lateBuffers(connection.client, async () => {
        if ((await library()) === undefined) throw reception.problem;
        return connection.peer?.buffers(sessionId) ?? {};
      }),
  });
  const connection = new Connection({ sessions, outbox: wire.outbox, account: deps.account, log });
  const closed = deferred<void>();
  const reception = new RequestDispatcher({
    wire,
    connection,
    log,
    loadLibrary: async () => {
      const { connectLibrary } = await import("./sdk-connection.ts");
      const end = () => closed.resolve();
      return connectLibrary({ wire, connection, program, log, withDraft, end });
    },
    warmUp: () => deps.warmUp(),
    warmUpCalls: () => deps.warmUpCalls(),
    settle: () => deps.settle(),
    end: () => closed.resolve(),
  });
  wire.connect(
    (message) => reception.receive(message),
    () => reception.end(),
  );
  return { closed: closed.promise, cutOff: (reason) => connection.cutOff(reason) };
}
