import type { AcpConnection } from "../connection.ts";
import type { Requester } from "../client/requester.ts";
import type { ProgramInfo } from "../initialize.ts";
import type { ProtocolVersion } from "../methods/method-table.ts";
import { createDraftRequests } from "./client-requests.ts";
import { createDraftMethods } from "./draft-methods.ts";
import { DraftSessions } from "./draft-sessions.ts";

/** Creates version 2. Its `initialize` makes the connection send updates and requests in this version. */
export function createDraftVersion(
  connection: AcpConnection,
  requester: Requester,
  program: ProgramInfo,
): ProtocolVersion {
  const sessions = new DraftSessions(connection);
  const requests = createDraftRequests(requester, (id) => sessions.getRequestContext(id));
  const select = () => {
    const endTurns = (reason: string) => sessions.endTurns(reason);
    connection.peer = { requests, buffers: () => ({}), endTurns };
    connection.createChannel = (session) => sessions.get(session).channel;
  };
  return createDraftMethods(connection, sessions, program, select);
}
