import type { Message } from "./message.ts";
import type { Part } from "./part.ts";

/** True when a user message starts a turn. False for a message sent into a turn or added by the program. */
export function startsTurn({ info, parts }: Message): boolean {
  if (info.role !== "user" || info.steering === true) return false;
  if (parts.some(({ type }) => type === "compaction")) return false;
  return parts.some(isForModel) && parts.some(isForUser);
}

function isForModel(part: Part): boolean {
  return part.type === "text" ? part.ignored !== true : isUserContent(part);
}

function isForUser(part: Part): boolean {
  return part.type === "text" ? part.synthetic !== true : isUserContent(part);
}

function isUserContent({ type }: Part): boolean {
  return type === "file" || type === "agent" || type === "subtask";
}
