import type { AgentContext } from "@agentclientprotocol/sdk/experimental/v2/unstable";
import type * as draft from "@agentclientprotocol/sdk/experimental/v2/unstable";
import type { RequestPermissionRequest } from "@agentclientprotocol/sdk/unstable";
import { type ClientRequests, cancelOptions } from "../client/client-requests.ts";
import { toToolCall } from "./convert.ts";
import type { Turns } from "./turns.ts";

/** Typed as string, because the SDK's types of both versions name the same schemas differently. */
const elicitationMethod: string = "elicitation/create";
const completedMethod: string = "elicitation/complete";
const authStatusMethod: string = "auth/status_update";

export interface RequestContext {
  cwd: string;
  turns: Turns;
}

/** Sends requests in version 2; the session's state is `requires_action` meanwhile. */
export function createDraftRequests(
  client: AgentContext,
  find: (sessionId: string) => RequestContext,
): ClientRequests {
  return {
    permission: (request, signal) => {
      const { cwd, turns } = find(request.sessionId);
      const draftRequest = toDraftPermission(request, cwd);
      return turns.whileRequiresAction(signal, () =>
        client.request("session/request_permission", draftRequest, cancelOptions(signal)),
      );
    },
    elicit: (request, signal) =>
      find(request.sessionId).turns.whileRequiresAction(signal, () =>
        client.request(elicitationMethod, request, cancelOptions(signal)),
      ),
    completeElicitation: (elicitationId) => client.notify(completedMethod, { elicitationId }),
    authStatus: (status) => client.notify(authStatusMethod, status),
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
