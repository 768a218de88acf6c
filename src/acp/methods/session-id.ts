import { isSessionId, type SessionId } from "../../message/ids.ts";
import { sessionNotFound } from "../errors.ts";

/** Throws "session not found" for ids in another format. */
export function parseSessionId(id: string): SessionId {
  if (!isSessionId(id)) throw sessionNotFound(id);
  return id;
}
