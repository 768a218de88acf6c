import type { SessionEvent } from "../message/event.ts";
import type { MessageInfo, ModelRef, UserInfo } from "../message/message.ts";
import { isFinished, type Part as StoredPart } from "../message/part.ts";
import type { GateCall } from "../permission/gate.ts";
import type { Part, PermissionQuestion, PluginEvent, PluginModelRef, UserMessage } from "./author.ts";

// What a session holds in the words that authors of plugins know.

export function authorModel({ provider, model }: ModelRef): PluginModelRef {
  return { providerID: provider, modelID: model };
}

export function authorMessage({ id, sessionId, agent, model, system, tools }: UserInfo): UserMessage {
  return {
    id,
    sessionID: sessionId,
    role: "user",
    agent,
    ...(model && { model: authorModel(model) }),
    ...(system && { system }),
    ...(tools && { tools }),
  };
}

export function authorPart(part: StoredPart, sessionID: string, messageID: string): Part {
  const words = { ...part, sessionID, messageID };
  return part.type === "tool" ? { ...words, callID: part.callId } : words;
}

export function authorQuestion({
  sessionId,
  callId,
  title,
  tool,
  input,
  permissions,
}: GateCall): PermissionQuestion {
  return {
    id: callId,
    type: permissions[0]?.permission ?? tool ?? "*",
    pattern: permissions.flatMap(({ subjects }) => subjects.map(({ text }) => text)),
    sessionID: sessionId,
    callID: callId,
    title,
    metadata: { tool, input },
  };
}

/** The events that a change of a session is to authors; pieces of text and live output are none. */
export function authorEvents(event: SessionEvent): PluginEvent[] {
  const sessionID = event.sessionId;
  switch (event.type) {
    case "message":
      return [{ type: "message.updated", properties: { info: authorInfo(event.info) } }];
    case "part":
      return [
        {
          type: "message.part.updated",
          properties: { part: authorPart(event.part, sessionID, event.messageId) },
        },
        ...editedFiles(event.part).map((file) => ({ type: "file.edited", properties: { file, sessionID } })),
      ];
    case "todos":
      return [{ type: "todo.updated", properties: { sessionID, todos: event.todos } }];
    case "title":
      return [{ type: "session.updated", properties: { sessionID, title: event.title } }];
    case "agent":
      return [{ type: "session.updated", properties: { sessionID, agent: event.agent } }];
    case "model":
      return [
        {
          type: "session.updated",
          properties: { sessionID, model: event.model && authorModel(event.model) },
        },
      ];
    case "usage":
      return [{ type: "session.updated", properties: { sessionID, usage: event.usage } }];
    case "child":
      return authorEvents(event.event);
    case "delta":
    case "summary":
    case "tool-output":
    case "approval":
    case "options":
    case "commands":
    case "notice":
      return [];
  }
}

function authorInfo(info: MessageInfo): Record<string, unknown> {
  if (info.role === "user") return { ...authorMessage(info), time: info.time };
  const { sessionId: sessionID, parentId: parentID, model, ...rest } = info;
  return { ...rest, sessionID, parentID, ...authorModel(model) };
}

function editedFiles(part: StoredPart): string[] {
  if (part.type !== "tool" || !isFinished(part.state) || !("changes" in part.state)) return [];
  return (part.state.changes ?? []).map(({ path }) => path);
}
