import { deferred } from "../base/async.ts";
import type { Log } from "../base/log.ts";
import type { Sessions } from "../session/sessions.ts";
import type { Account } from "./methods/account.ts";
import type { Client } from "./client/client-host.ts";
import { Requester } from "./client/requester.ts";
import { AcpConnection, type ExplainDefaults } from "./connection.ts";
import type { ProgramInfo } from "./initialize.ts";
import type { ProtocolVersion } from "./methods/method-table.ts";
import type { JoinedSessions } from "./reconnect/joined-sessions.ts";
import { createStableVersion } from "./methods/stable-methods.ts";
import { RequestDispatcher } from "./request-dispatcher.ts";
import type { Wire } from "./transport/wire.ts";
import { WarmUp } from "./warm-up.ts";

/** Creates the draft of the next protocol version. */
export type CreateDraftVersion = (
  connection: AcpConnection,
  requester: Requester,
  program: ProgramInfo,
) => ProtocolVersion;

/** Creates the client's sessions in other processes. */
export type LoadJoinedSessions = (wire: Wire, requester: Requester) => Promise<JoinedSessions>;

export interface ServerDeps {
  wire: Wire;
  program: ProgramInfo;
  log: Log;
  /** Connects the client to the sessions of the process. */
  openSessions: (client: Client) => Sessions;
  account: Account;
  /** Without it only the stable version is supported. */
  createDraftVersion?: CreateDraftVersion;
  /** Loads modules for the first prompt. Must not throw. */
  warmUp: () => Promise<void>;
  /** Loads modules for the first tool call. Must not throw. */
  warmUpCalls: () => Promise<void>;
  /** Called once: after the first turn, or when the warm-up time has passed. */
  settle: () => void;
  /** Called when the client was answered that a session is open. */
  onOpened?: (sessionId: string) => void;
  /** Explains the default permissions, once per installation. Must not throw. */
  explainDefaults?: ExplainDefaults;
  /** Loads the module that opens sessions of other processes; without it they are refused. */
  loadJoinedSessions?: LoadJoinedSessions;
}

export interface AcpServer {
  /** Resolves when the client disconnected; open requests may be answered after that. */
  readonly closed: Promise<void>;
  /** Reports all running turns as ended; used when the process must exit. */
  abortTurns(reason: string): Promise<void>;
  /** Whether the client has opened the session or is opening it. */
  holds(sessionId: string): boolean;
}

/** Serves one client. */
export function serveClient({
  wire,
  program,
  log,
  openSessions,
  account,
  createDraftVersion,
  warmUp: loadTurn,
  warmUpCalls: loadCalls,
  settle,
  onOpened,
  explainDefaults,
  loadJoinedSessions,
}: ServerDeps): AcpServer {
  const { outbox } = wire;
  const gone = new AbortController();
  const closed = deferred<void>();
  const requester = new Requester((message) => wire.send(message), log);
  const connection = new AcpConnection({
    openSessions,
    outbox,
    requester,
    gone: gone.signal,
    account,
    log,
    onOpened,
    explainDefaults,
  });
  const warmUp = new WarmUp({
    outbox,
    loadTurn,
    loadCalls,
    settle,
  });
  const dispatcher = new RequestDispatcher({
    send: (message) => wire.send(message),
    requester,
    stable: createStableVersion(connection, program),
    draft: createDraftVersion?.(connection, requester, program),
    log,
    onAnswered: (method) => warmUp.onAnswered(method),
    onEnd: () => {
      warmUp.end();
      gone.abort();
      closed.resolve();
    },
    loadJoinedSessions: loadJoinedSessions && (() => loadJoinedSessions(wire, requester)),
  });
  wire.connect(dispatcher);
  return {
    closed: closed.promise,
    abortTurns: (reason) => connection.abortTurns(reason),
    holds: (sessionId) => connection.holds(sessionId),
  };
}
