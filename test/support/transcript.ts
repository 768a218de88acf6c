import type { SessionUpdate, ToolCall } from "@agentclientprotocol/sdk";
import type { Editor } from "./editor/editor.ts";
import type { JsonObject } from "./json.ts";

/** The text of the agent's messages among the updates. */
export const agentText = (updates: readonly SessionUpdate[]): string =>
  chunkText(updates, "agent_message_chunk");

export const thoughtText = (updates: readonly SessionUpdate[]): string =>
  chunkText(updates, "agent_thought_chunk");

/** Each tool call as the user sees it after all updates, in the order of their announcement. */
export const toolCalls = (updates: readonly SessionUpdate[]): ToolCall[] =>
  listCards(updates).filter((card) => !isEvidence(card));

/** The cards that show what a turn changed and ran. */
export const evidenceCards = (updates: readonly SessionUpdate[]): ToolCall[] =>
  listCards(updates).filter(isEvidence);

const isEvidence = ({ _meta }: ToolCall): boolean => _meta?.["evidence"] !== undefined;

function listCards(updates: readonly SessionUpdate[]): ToolCall[] {
  const calls = new Map<string, ToolCall>();
  for (const update of updates) {
    if (update.sessionUpdate === "tool_call") calls.set(update.toolCallId, untagged(update));
    if (update.sessionUpdate !== "tool_call_update") continue;
    const before = calls.get(update.toolCallId);
    if (before) calls.set(update.toolCallId, untagged({ ...before, ...givenFields(update) }));
  }
  return [...calls.values()];
}

/**
 * Returns what the user reads from top to bottom: messages at their beginning, calls at their announcement.
 */
export function shown(updates: readonly SessionUpdate[]): unknown[] {
  const items: { key: string; item: unknown }[] = [];
  const calls = new Map(listCards(updates).map((call) => [call.toolCallId, call]));
  for (const update of updates) {
    if (update.sessionUpdate === "tool_call")
      items.push({ key: update.toolCallId, item: calls.get(update.toolCallId) });
    if (!isChunk(update)) continue;
    const { sessionUpdate: kind, messageId, content } = update;
    const last = items.at(-1);
    const key = `${kind} ${messageId}`;
    const before = last?.key === key && isText(last.item) ? last.item : undefined;
    if (before && content.type === "text") before.text += content.text;
    else if (content.type === "text") items.push({ key, item: { kind, messageId, text: content.text } });
    else items.push({ key, item: { kind, messageId, content } });
  }
  return items.map(({ item }) => item);
}

type Chunk = Extract<
  SessionUpdate,
  { sessionUpdate: "user_message_chunk" | "agent_message_chunk" | "agent_thought_chunk" }
>;

const isChunk = (update: SessionUpdate): update is Chunk => update.sessionUpdate.endsWith("_chunk");

const isText = (item: unknown): item is { text: string } =>
  typeof item === "object" && item !== null && "text" in item;

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

/** An update changes the fields it names; null and absent fields stay unchanged. */
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

/** Loads the session and returns the replayed texts of the user and the agent. */
export async function replayTexts(
  editor: Editor,
  sessionId: string,
  _meta: JsonObject = {},
): Promise<string[]> {
  const before = editor.updates(sessionId).length;
  await editor.load(sessionId, { _meta });
  return editor
    .updates(sessionId)
    .slice(before)
    .flatMap((update) =>
      (update.sessionUpdate === "user_message_chunk" || update.sessionUpdate === "agent_message_chunk") &&
      update.content.type === "text"
        ? [update.content.text]
        : [],
    );
}
