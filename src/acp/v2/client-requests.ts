import type * as draft from "@agentclientprotocol/sdk/experimental/v2/unstable";
import type { RequestPermissionRequest } from "@agentclientprotocol/sdk/unstable";
import type { ClientRequests, Requester } from "../client/requester.ts";
import { toToolCall } from "./convert.ts";
import type { Turns } from "./turns.ts";

export interface RequestContext {
  turns: Turns;
  /** Whether the call has started, as far as the client knows, and has not ended. */
  isRunning: (callId: string) => boolean;
  setPaused: (callId: string, isPaused: boolean) => void;
}

/**
 * Sends requests in version 2. Meanwhile the session's state is `requires_action`, and a call that asks after it has
 * started is `paused`.
 */
export function createDraftRequests(
  requester: Requester,
  find: (sessionId: string) => RequestContext,
): ClientRequests {
  return {
    permission: (request, signal) => {
      const context = find(request.sessionId);
      const { toolCallId } = request.toolCall;
      const draftRequest = toDraftPermission(request, context.isRunning(toolCallId));
      return whileAsking(context, toolCallId, signal, () =>
        requester.request("session/request_permission", draftRequest, signal),
      );
    },
    elicit: (request, signal) => {
      const callId = "toolCallId" in request ? request.toolCallId : undefined;
      return whileAsking(
        find(request.sessionId),
        typeof callId === "string" ? callId : undefined,
        signal,
        () => requester.request("elicitation/create", request, signal),
      );
    },
    completeElicitation: (elicitationId) => requester.notify("elicitation/complete", { elicitationId }),
    authStatus: (status) => requester.notify("auth/status_update", status),
  };
}

async function whileAsking<T>(
  { turns, isRunning, setPaused }: RequestContext,
  callId: string | undefined,
  signal: AbortSignal,
  ask: () => Promise<T>,
): Promise<T> {
  if (callId === undefined || !isRunning(callId)) return turns.whileRequiresAction(signal, ask);
  setPaused(callId, true);
  try {
    return await turns.whileRequiresAction(signal, ask);
  } finally {
    if (!signal.aborted) setPaused(callId, false);
  }
}

function toDraftPermission(
  request: RequestPermissionRequest,
  isPaused: boolean,
): draft.RequestPermissionRequest {
  const { sessionId, toolCall, options } = request;
  const { _meta: _, ...call } = toolCall;
  return {
    sessionId,
    title: call.title ?? "Allow this tool call?",
    subject: {
      type: "tool_call",
      toolCall: { ...toToolCall(call), ...(isPaused && { status: "paused" as const }) },
    },
    options: options.map(({ optionId, name, kind }) => ({ optionId, name, kind })),
  };
}
