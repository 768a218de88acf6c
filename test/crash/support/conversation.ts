import type { SessionUpdate } from "@agentclientprotocol/sdk";

/** One thing that a user sees in a session: a message's text, a call in its final state, or the evidence of a turn. */
export interface Item {
  kind: "text" | "call" | "evidence";
  id: string;
  role: string;
  text: string;
  status: string;
}

/**
 * Returns the content that the updates result in, in order. Without notices, which belong to a moment and not
 * to the session: they have no id.
 */
export function itemsOf(updates: readonly SessionUpdate[]): Item[] {
  const items = new Map<string, Item>();
  for (const update of updates) {
    const kind = update.sessionUpdate;
    if (kind === "user_message_chunk" || kind === "agent_message_chunk" || kind === "agent_thought_chunk")
      addText(items, update);
    else if (kind === "tool_call" || kind === "tool_call_update") addCall(items, update);
  }
  return [...items.values()];
}

type Chunk = Extract<
  SessionUpdate,
  { sessionUpdate: `${"user_message" | "agent_message" | "agent_thought"}_chunk` }
>;

function addText(items: Map<string, Item>, { messageId, content, sessionUpdate }: Chunk): void {
  if (!messageId || content.type !== "text") return;
  const role = sessionUpdate.split("_")[0] ?? "";
  const item = items.get(`text ${messageId}`) ?? { kind: "text", id: messageId, role, text: "", status: "" };
  item.text += content.text;
  items.set(`text ${messageId}`, item);
}

type Call = Extract<SessionUpdate, { sessionUpdate: "tool_call" | "tool_call_update" }>;

function addCall(items: Map<string, Item>, update: Call): void {
  const id = update.toolCallId;
  const kind = update._meta?.["evidence"] === undefined ? "call" : "evidence";
  const item = items.get(`call ${id}`) ?? { kind, id, role: "agent", text: "", status: "" };
  if (update.status) item.status = update.status;
  if (update.content) item.text = JSON.stringify(update.content);
  if (update.title) item.role = update.title;
  items.set(`call ${id}`, item);
}
