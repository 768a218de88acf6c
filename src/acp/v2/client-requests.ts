import type * as draft from "@agentclientprotocol/sdk/experimental/v2/unstable";
import type { RequestPermissionRequest } from "@agentclientprotocol/sdk/unstable";
import type { ClientRequests, Requester } from "../client/requester.ts";
import { toToolCall } from "./convert.ts";
import type { Turns } from "./turns.ts";

export interface RequestContext {
  cwd: string;
  turns: Turns;
}

/** Sends requests in version 2; the session's state is `requires_action` meanwhile. */
export function createDraftRequests(
  requester: Requester,
  find: (sessionId: string) => RequestContext,
): ClientRequests {
  return {
    permission: (request, signal) => {
      const { cwd, turns } = find(request.sessionId);
      const draftRequest = toDraftPermission(request, cwd);
      return turns.whileRequiresAction(signal, () =>
        requester.request("session/request_permission", draftRequest, signal),
      );
    },
    elicit: (request, signal) =>
      find(request.sessionId).turns.whileRequiresAction(signal, () =>
        requester.request("elicitation/create", request, signal),
      ),
    completeElicitation: (elicitationId) => requester.notify("elicitation/complete", { elicitationId }),
    authStatus: (status) => requester.notify("auth/status_update", status),
  };
}

function toDraftPermission(request: RequestPermissionRequest, cwd: string): draft.RequestPermissionRequest {
  const { sessionId, toolCall, options } = request;
  const { _meta: _, ...call } = toolCall;
  return {
    sessionId,
    title: call.title ?? "Allow this tool call?",
    subject: { type: "tool_call", toolCall: toToolCall(call, cwd) },
    options: options.map(({ optionId, name, kind }) => ({ optionId, name, kind })),
  };
}
