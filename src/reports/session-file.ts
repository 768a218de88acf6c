import { z } from "zod";
import { collect } from "../base/async.ts";
import type { SessionId } from "../message/ids.ts";
import {
  type Message,
  messageSchema,
  type SessionInfo,
  sessionInfoSchema,
  type Todo,
  todoSchema,
} from "../message/message.ts";
import type { SessionStore } from "../storage/session-store.ts";

/** Export format of a session with its child sessions. */
export interface SessionFile {
  readonly fairlead: "session";
  /** Readers reject unknown versions. */
  readonly version: 1;
  readonly info: SessionInfo;
  /** Oldest first. */
  readonly messages: readonly Message[];
  readonly todos: readonly Todo[];
  readonly children: readonly SessionFile[];
}

export const sessionFileSchema: z.ZodType<SessionFile> = z.object({
  fairlead: z.literal("session"),
  version: z.literal(1),
  info: sessionInfoSchema,
  messages: z.array(messageSchema),
  todos: z.array(todoSchema),
  get children(): z.ZodArray<z.ZodType<SessionFile>> {
    return z.array(sessionFileSchema);
  },
});

/** Maximum number of child sessions. */
const childLimit = 1_000;

/** Undefined if the session does not exist. */
export async function readSession(store: SessionStore, id: SessionId): Promise<SessionFile | undefined> {
  const info = await store.load(id);
  if (info === undefined) return undefined;
  const messages = await collect(store.messages(id));
  const { sessions } = await store.list({ parentId: id, includeArchived: true, limit: childLimit });
  const children: SessionFile[] = [];
  for (const child of sessions) {
    const read = await readSession(store, child.id);
    if (read !== undefined) children.push(read);
  }
  return { fairlead: "session", version: 1, info, messages, todos: await store.todos(id), children };
}
