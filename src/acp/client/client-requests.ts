import type {
  AuthStatusResponse,
  CreateElicitationRequest,
  RequestPermissionRequest,
} from "@agentclientprotocol/sdk/unstable";
import type { SessionId } from "../../message/ids.ts";
import type { EditorBuffers } from "../../workspace/files/editor-files.ts";
import type { Requester } from "./requester.ts";

/** Sends requests to the client, in its protocol version. Responses are not validated. */
export interface ClientRequests {
  permission(request: RequestPermissionRequest, signal: AbortSignal): Promise<unknown>;
  /** Shows a form, or a URL to visit. */
  elicit(request: SessionElicitation, signal: AbortSignal): Promise<unknown>;
  /** Reports that the URL of an elicitation was visited. */
  completeElicitation(elicitationId: string): void;
  /** Reports a changed authentication status. Unstable. */
  authStatus(status: AuthStatusResponse): void;
}

/** What the agent asks of the client, in its protocol version. */
export interface Peer {
  requests: ClientRequests;
  buffers(sessionId: SessionId): EditorBuffers;
  /** Reports the end of running turns, in protocol versions where the prompt's response does not. */
  endTurns?(reason: string): Promise<void>;
}

export type SessionElicitation = CreateElicitationRequest & { sessionId: string };

export function createClientRequests(requester: Requester): ClientRequests {
  return {
    permission: (request, signal) => requester.request("session/request_permission", request, signal),
    elicit: (request, signal) => requester.request("elicitation/create", request, signal),
    completeElicitation: (elicitationId) => requester.notify("elicitation/complete", { elicitationId }),
    authStatus: (status) => requester.notify("auth/status_update", status),
  };
}
