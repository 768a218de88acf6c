import type {
  AgentContext,
  ElicitationSchema,
  RequestPermissionRequest,
} from "@agentclientprotocol/sdk/unstable";

/** Questions that belong to a call. */
export interface Form {
  sessionId: string;
  toolCallId: string;
  message: string;
  requestedSchema: ElicitationSchema;
}

/** How the client is asked, whatever version of the protocol it speaks. What it answers is not trusted yet. */
export interface Asker {
  permission(request: RequestPermissionRequest, signal: AbortSignal): Promise<unknown>;
  form(form: Form, signal: AbortSignal): Promise<unknown>;
}

export function askerOf(client: AgentContext): Asker {
  return {
    permission: (request, signal) =>
      client.request("session/request_permission", request, waitingFor(signal)),
    form: (form, signal) =>
      client.request("elicitation/create", { mode: "form", ...form }, waitingFor(signal)),
  };
}

/** A client that never answers must not hold up a cancel. */
export function waitingFor(signal: AbortSignal) {
  return { cancellationSignal: signal, stopWaitingOnCancel: true } as const;
}
