import type { SessionUpdate, ToolCall } from "@agentclientprotocol/sdk";

/** The text of the agent's messages among the updates. */
export const agentText = (updates: readonly SessionUpdate[]): string =>
  chunkText(updates, "agent_message_chunk");

export const thoughtText = (updates: readonly SessionUpdate[]): string =>
  chunkText(updates, "agent_thought_chunk");

/** Each tool call as the person sees it after all updates, in the order of their announcement. */
export function toolCalls(updates: readonly SessionUpdate[]): ToolCall[] {
  const calls = new Map<string, ToolCall>();
  for (const update of updates) {
    if (update.sessionUpdate === "tool_call") calls.set(update.toolCallId, untagged(update));
    if (update.sessionUpdate !== "tool_call_update") continue;
    const before = calls.get(update.toolCallId);
    if (before) calls.set(update.toolCallId, untagged({ ...before, ...givenFields(update) }));
  }
  return [...calls.values()];
}

function chunkText(
  updates: readonly SessionUpdate[],
  kind: "agent_message_chunk" | "agent_thought_chunk",
): string {
  return updates
    .map((update) =>
      update.sessionUpdate === kind && update.content.type === "text" ? update.content.text : "",
    )
    .join("");
}

/** An update changes what it names; null and absence leave a field as it was. */
function givenFields(update: object): object {
  return Object.fromEntries(
    Object.entries(update).filter(([, value]) => value !== null && value !== undefined),
  );
}

/** The update without its tag. */
function untagged(update: ToolCall): ToolCall {
  const call = { ...update };
  Reflect.deleteProperty(call, "sessionUpdate");
  return call;
}
