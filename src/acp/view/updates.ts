import type { AvailableCommand, SessionUpdate } from "@agentclientprotocol/sdk/unstable";
import { removeControls } from "../../base/text/controls.ts";
import type { Todo } from "../../message/message.ts";
import { renderEvidence, titleOf } from "../../evidence/describe.ts";
import { roundCost } from "../../base/text/cost.ts";
import type { EvidencePart } from "../../message/part.ts";
import type { Session } from "../../session/session.ts";
import type { ClientFeatures } from "../client-capabilities.ts";
import { limitContent } from "./card-limits.ts";
import { formatTitle } from "./titles.ts";

/** Shows what a turn changed and ran, as a completed tool call that the model did not make. */
export function evidenceUpdate(
  part: EvidencePart,
  client: Pick<ClientFeatures, "markdownTitles">,
): SessionUpdate {
  const { id, type, ...facts } = part;
  return {
    sessionUpdate: "tool_call",
    toolCallId: id,
    title: formatTitle(titleOf(facts), "other", client),
    kind: "other",
    status: "completed",
    content: limitContent([{ type: "content", content: { type: "text", text: renderEvidence(facts) } }]),
    _meta: { [type]: facts },
  };
}

export function planUpdate(todos: readonly Todo[]): SessionUpdate {
  const entries = todos.map(({ content, priority, status }) => ({
    content: removeControls(content),
    priority,
    status: status === "cancelled" ? ("completed" as const) : status,
  }));
  return { sessionUpdate: "plan", entries };
}

export function titleUpdate(title: string, updatedAt: number): SessionUpdate {
  return { sessionUpdate: "session_info_update", title, updatedAt: new Date(updatedAt).toISOString() };
}

/** `used` and `size` are tokens of the context; `cost` is the session's cost in US dollars. */
export function usageUpdate(used: number, size: number, cost: number | undefined): SessionUpdate {
  return {
    sessionUpdate: "usage_update",
    used,
    size,
    ...(cost !== undefined && cost !== 0 && { cost: { amount: roundCost(cost), currency: "USD" } }),
  };
}

/** Lists the slash commands. */
export function listCommands(session: Session): AvailableCommand[] {
  return session.commands.map(({ name, description, hint }) => ({
    name,
    description,
    ...(hint && { input: { hint } }),
  }));
}
