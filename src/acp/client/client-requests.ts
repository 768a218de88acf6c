import type {
  AgentContext,
  AuthStatusResponse,
  CreateElicitationRequest,
  RequestPermissionRequest,
} from "@agentclientprotocol/sdk/unstable";

/** Sends requests to the client, in its protocol version. Responses are not validated. */
export interface ClientRequests {
  permission(request: RequestPermissionRequest, signal: AbortSignal): Promise<unknown>;
  /** Shows a form, or a URL to visit. */
  elicit(request: SessionElicitation, signal: AbortSignal): Promise<unknown>;
  /** Reports that the URL of an elicitation was visited. */
  completeElicitation(elicitationId: string): Promise<void>;
  /** Reports a changed authentication status. Unstable. */
  authStatus(status: AuthStatusResponse): Promise<void>;
}

export type SessionElicitation = CreateElicitationRequest & { sessionId: string };

export function createClientRequests(client: AgentContext): ClientRequests {
  return {
    permission: (request, signal) =>
      client.request("session/request_permission", request, cancelOptions(signal)),
    elicit: (request, signal) => client.request("elicitation/create", request, cancelOptions(signal)),
    completeElicitation: (elicitationId) => client.notify("elicitation/complete", { elicitationId }),
    authStatus: (status) => client.notify("auth/status_update", status),
  };
}

/** Stops waiting for the response when cancelled, because a client may never answer. */
export function cancelOptions(signal: AbortSignal) {
  return { cancellationSignal: signal, stopWaitingOnCancel: true } as const;
}
