import type {
  AgentContext,
  AuthStatusResponse,
  CreateElicitationRequest,
  RequestPermissionRequest,
} from "@agentclientprotocol/sdk/unstable";

/** How the client is asked, whatever version of the protocol it speaks. What it answers is not trusted yet. */
export interface ClientRequests {
  permission(request: RequestPermissionRequest, signal: AbortSignal): Promise<unknown>;
  /** A form, or an address to be visited. */
  elicit(request: SessionElicitation, signal: AbortSignal): Promise<unknown>;
  /** Tells that the address of an elicitation was visited. */
  completeElicitation(elicitationId: string): Promise<void>;
  /** Tells that it is another one now. Unstable. */
  authStatus(status: AuthStatusResponse): Promise<void>;
}

/** What is asked in a session. */
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

/** A client that never answers must not hold up a cancel. */
export function cancelOptions(signal: AbortSignal) {
  return { cancellationSignal: signal, stopWaitingOnCancel: true } as const;
}
