import type { SessionEvent } from "../message/event.ts";
import type { SessionId } from "../message/ids.ts";
import type { MessageInfo, ModelRef, SessionInfo, UserInfo } from "../message/message.ts";
import { isFinished, type Part as StoredPart } from "../message/part.ts";
import type { GateCall, Question } from "../permission/gate.ts";
import type {
  Part,
  PermissionQuestion,
  PermissionRequest,
  PluginEvent,
  PluginModelRef,
  PluginSession,
  SessionStatus,
  UserMessage,
} from "./author.ts";

export type { SessionStatus } from "./author.ts";

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

export function authorPermission(question: Question, id: string): PermissionRequest {
  const { type, pattern, ...asked } = authorQuestion(question);
  const { always, callId: callID } = question;
  const tool = { callID };
  return { ...asked, id, type, pattern, permission: type, patterns: pattern, always: [...always], tool };
}

export function authorSession(info: SessionInfo): PluginSession {
  const { id, projectId: projectID, parentId, cwd, title, agent, model, cost, time, version, summary } = info;
  return {
    id,
    projectID,
    ...(parentId !== undefined && { parentID: parentId }),
    directory: cwd,
    title: title ?? "",
    agent,
    ...(model && { model: authorModel(model) }),
    cost,
    time,
    version,
    ...(summary && { summary }),
  };
}

/**
 * Returns the events of a session's change. Single pieces of text and live output make none. `infoOf` returns what is
 * stored of a live session.
 */
export function authorEvents(
  event: SessionEvent,
  infoOf: (id: SessionId) => SessionInfo | undefined,
): PluginEvent[] {
  const sessionID = event.sessionId;
  const updated = (changed: Record<string, unknown>): PluginEvent[] => {
    const info = infoOf(sessionID);
    const properties = { sessionID, ...(info && { info: authorSession(info) }), ...changed };
    return [{ type: "session.updated", properties }];
  };
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
        ...statusesOf(event.part).map((status) => ({
          type: "session.status",
          properties: { sessionID, status },
        })),
      ];
    case "todos":
      return [{ type: "todo.updated", properties: { sessionID, todos: event.todos } }];
    case "title":
      return updated({ title: event.title });
    case "agent":
      return updated({ agent: event.agent });
    case "model":
      return updated({ model: event.model && authorModel(event.model) });
    case "usage":
      return updated({ usage: event.usage });
    case "child":
      return authorEvents(event.event, infoOf);
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

/** A step that begins ends the wait for a retry. */
function statusesOf(part: StoredPart): SessionStatus[] {
  if (part.type === "step-start") return [{ type: "busy" }];
  if (part.type !== "retry") return [];
  const { attempt, error: message, time, delayMs } = part;
  return [{ type: "retry", attempt, message, next: time + delayMs }];
}

function editedFiles(part: StoredPart): string[] {
  if (part.type !== "tool" || !isFinished(part.state) || !("changes" in part.state)) return [];
  return (part.state.changes ?? []).map(({ path }) => path);
}
