import type { AvailableCommand, SessionUpdate } from "@agentclientprotocol/sdk/unstable";
import { removeControls } from "../../base/text/controls.ts";
import type { Todo } from "../../message/message.ts";
import type { Part } from "../../message/part.ts";
import type { Session } from "../../session/session.ts";

/** More of a text of the model; chunks with the same id are one text. */
export function textChunk(kind: "text" | "reasoning", messageId: string, text: string): SessionUpdate {
  const sessionUpdate = kind === "text" ? "agent_message_chunk" : "agent_thought_chunk";
  return { sessionUpdate, messageId, content: { type: "text", text } };
}

/** That a model call failed and is tried again. */
export function retryUpdate(retry: Part & { type: "retry" }): SessionUpdate {
  const seconds = Math.max(1, Math.round(retry.delayMs / 1000));
  const text = `${removeControls(retry.error)}\nTrying again in ${seconds} s (attempt ${retry.attempt} of ${retry.attempts}).\n\n`;
  return textChunk("reasoning", retry.id, text);
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

/** Tokens in the context, of how many, and what the session has cost in US dollars. */
export function usageUpdate(used: number, size: number, cost: number | undefined): SessionUpdate {
  return {
    sessionUpdate: "usage_update",
    used,
    size,
    ...(cost !== undefined && cost !== 0 && { cost: { amount: cost, currency: "USD" } }),
  };
}

/** What can be called with a slash. */
export function listCommands(session: Session): AvailableCommand[] {
  return session.commands.map(({ name, description, hint }) => ({
    name,
    description,
    ...(hint && { input: { hint } }),
  }));
}
