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

// Converts session data to the types of the plugin API.

export function toPluginModel({ provider, model }: ModelRef): PluginModelRef {
  return { providerID: provider, modelID: model };
}

export function toPluginMessage({ id, sessionId, agent, model, system, tools }: UserInfo): UserMessage {
  return {
    id,
    sessionID: sessionId,
    role: "user",
    agent,
    ...(model && { model: toPluginModel(model) }),
    ...(system && { system }),
    ...(tools && { tools }),
  };
}

export function toPluginPart(part: StoredPart, sessionID: string, messageID: string): Part {
  const common = { ...part, sessionID, messageID };
  return part.type === "tool" ? { ...common, callID: part.callId } : common;
}

export function toPermissionQuestion({
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

export function toPermissionRequest(question: Question, id: string): PermissionRequest {
  const { type, pattern, ...rest } = toPermissionQuestion(question);
  const { always, callId: callID } = question;
  const tool = { callID };
  return { ...rest, id, type, pattern, permission: type, patterns: pattern, always: [...always], tool };
}

export function toPluginSession(info: SessionInfo): PluginSession {
  const { id, projectId: projectID, parentId, cwd, title, agent, model, cost, time, version, summary } = info;
  return {
    id,
    projectID,
    ...(parentId !== undefined && { parentID: parentId }),
    directory: cwd,
    title: title ?? "",
    agent,
    ...(model && { model: toPluginModel(model) }),
    cost,
    time,
    version,
    ...(summary && { summary }),
  };
}

/**
 * Converts a session change to plugin events. Text deltas and live output have none. `infoOf` returns the
 * stored info of an open session.
 */
export function toPluginEvents(
  event: SessionEvent,
  infoOf: (id: SessionId) => SessionInfo | undefined,
): PluginEvent[] {
  const sessionID = event.sessionId;
  const updated = (changed: Record<string, unknown>): PluginEvent[] => {
    const info = infoOf(sessionID);
    const properties = { sessionID, ...(info && { info: toPluginSession(info) }), ...changed };
    return [{ type: "session.updated", properties }];
  };
  switch (event.type) {
    case "message":
      return [{ type: "message.updated", properties: { info: toMessageInfo(event.info) } }];
    case "part":
      return [
        {
          type: "message.part.updated",
          properties: { part: toPluginPart(event.part, sessionID, event.messageId) },
        },
        ...listEditedFiles(event.part).map((file) => ({
          type: "file.edited",
          properties: { file, sessionID },
        })),
        ...listStatuses(event.part).map((status) => ({
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
      return updated({ model: event.model && toPluginModel(event.model) });
    case "usage":
      return updated({ usage: event.usage });
    case "child":
      return toPluginEvents(event.event, infoOf);
    case "delta":
    case "summary":
    case "compacted":
    case "tool-output":
    case "job-ended":
    case "job-output":
    case "approval":
    case "options":
    case "commands":
    case "decision":
    case "notice":
      return [];
  }
}

function toMessageInfo(info: MessageInfo): Record<string, unknown> {
  if (info.role === "user") return { ...toPluginMessage(info), time: info.time };
  const { sessionId: sessionID, parentId: parentID, model, ...rest } = info;
  return { ...rest, sessionID, parentID, ...toPluginModel(model) };
}

/** Starting a step ends the wait for a retry. */
function listStatuses(part: StoredPart): SessionStatus[] {
  if (part.type === "step-start") return [{ type: "busy" }];
  if (part.type !== "retry") return [];
  const { attempt, error: message, time, delayMs } = part;
  return [{ type: "retry", attempt, message, next: time + delayMs }];
}

function listEditedFiles(part: StoredPart): string[] {
  if (part.type !== "tool" || !isFinished(part.state) || !("changes" in part.state)) return [];
  return (part.state.changes ?? []).map(({ path }) => path);
}
