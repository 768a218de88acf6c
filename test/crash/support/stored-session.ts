import type { Log } from "../../../src/base/log.ts";
import {
  type MessageId,
  newMessageId,
  newPartId,
  newSessionId,
  type SessionId,
} from "../../../src/message/ids.ts";
import type { AssistantInfo, Message, SessionInfo } from "../../../src/message/message.ts";
import type { Part, TextPart, ToolPart } from "../../../src/message/part.ts";
import type { SessionStore, SessionWriter } from "../../../src/storage/session-store.ts";

/** Values for tests of the store. */
export function sessionInfo(fields: Partial<SessionInfo> = {}): SessionInfo {
  return {
    id: newSessionId(),
    projectId: "p1",
    cwd: "/work",
    agent: "build",
    cost: 0,
    time: { created: 1, updated: 1 },
    version: "1.0.0",
    ...fields,
  };
}

export function assistantInfo(sessionId: SessionId, fields: Partial<AssistantInfo> = {}): AssistantInfo {
  return {
    id: newMessageId(),
    sessionId,
    role: "assistant",
    parentId: "msg_0",
    time: { created: 1 },
    agent: "build",
    model: { provider: "test", model: "one" },
    cost: 0,
    tokens: { input: 0, output: 0, reasoning: 0, cache: { read: 0, write: 0 } },
    ...fields,
  };
}

export function textPart(text = ""): TextPart {
  return { id: newPartId(), type: "text", text };
}

export function toolPart(output: string): ToolPart {
  return {
    id: newPartId(),
    type: "tool",
    callId: "call",
    tool: "read",
    state: { status: "completed", input: {}, output, time: { start: 1, end: 2 } },
  };
}

/** Writes a finished message with these parts. */
export function putSealed(writer: SessionWriter, parts: Part[], id: MessageId = newMessageId()): Message {
  const message = { info: assistantInfo(writer.id, { id }), parts };
  writer.putMessage(message.info);
  for (const part of parts) writer.putPart(id, part);
  writer.seal(id);
  return message;
}

export async function openWriter(store: SessionStore, id: SessionId): Promise<SessionWriter> {
  const opened = await store.openSession(id);
  if (opened.status !== "opened") throw new Error(`the session is ${opened.status}`);
  return opened.writer;
}

export async function all<T>(items: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = [];
  for await (const item of items) found.push(item);
  return found;
}

/** Collects the warnings. */
export function recordingLog(warnings: string[]): Log {
  return { debug() {}, info() {}, warn: (message) => warnings.push(message), error() {} };
}
