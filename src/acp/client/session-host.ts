import type { SessionHost } from "../../session/session-host.ts";
import type { Log } from "../../base/log.ts";
import type { SessionId } from "../../message/ids.ts";
import type { ClientFeatures } from "../client-capabilities.ts";
import type { ClientPaths } from "../client-paths.ts";
import type { SessionView } from "../view/session-view.ts";
import type { Peer } from "./requester.ts";

/** The client's features and the views of its sessions. */
interface Client {
  readonly client: ClientFeatures;
  readonly peer: Peer;
  findView(sessionId: string): SessionView | undefined;
  getPaths(sessionId: string): ClientPaths;
}

/**
 * Creates the host of the client's sessions. A request about a tool call is sent after its call was announced. The code
 * of each kind of request loads with the first one.
 */
export function createSessionHost(connection: Client, log: Log): SessionHost {
  const asking = () => ({ requests: connection.peer.requests, features: connection.client, log });
  /** Sessions whose user gave no reason when asked after a rejection, and is not asked again. */
  const unexplained = new Set<SessionId>();
  return {
    ask: async (question, signal) => {
      const { callId, title, sessionId, askedUnder = sessionId } = question;
      const { requestPermission } = await import("./permissions.ts");
      await connection.findView(askedUnder)?.announce(callId, title);
      const { requests, features } = asking();
      const paths = connection.getPaths(askedUnder);
      return requestPermission(requests, question, { features, paths }, signal);
    },
    askWhy: async (question, signal) => {
      const { sessionId, askedUnder = sessionId } = question;
      const { requests, features } = asking();
      const isOptional = !features.duplicateOptionKinds;
      if (isOptional && unexplained.has(askedUnder)) return undefined;
      const { requestReason } = await import("./permissions.ts");
      const reason = await requestReason(requests, question, features, signal);
      if (isOptional && reason === undefined) unexplained.add(askedUnder);
      return reason;
    },
    inquire: async (sessionId, inquiry, signal) => {
      const { askQuestions } = await import("./questions.ts");
      await connection.findView(sessionId)?.announce(inquiry.callId);
      return askQuestions(asking(), sessionId, inquiry, signal);
    },
    elicit: async (sessionId, elicitation, signal) => {
      const { elicitFromClient } = await import("./elicitations.ts");
      const { callId } = elicitation;
      if (callId !== undefined) await connection.findView(sessionId)?.announce(callId);
      return elicitFromClient(asking(), sessionId, elicitation, signal);
    },
    userCapabilities: () => ({
      forms: connection.client.forms,
      urls: connection.client.urls,
      sampling: connection.client.isAttended,
    }),
    visited: (elicitationId) => connection.peer.requests.completeElicitation(elicitationId),
    buffers: (sessionId) => connection.peer.buffers(sessionId),
  };
}
