import { messageIdAfter, type MessageId, newMessageId, newPartId, type SessionId } from "../message/ids.ts";
import { hasClientId, type Message, type MessageInfo, type SessionInfo } from "../message/message.ts";
import {
  createLostEnd,
  endJob,
  hasRunningJob,
  type JobEnd,
  type Part,
  type ToolPart,
} from "../message/part.ts";
import type { SessionStore } from "../storage/session-store.ts";

/** Last message of a fork: the id of the message or of one of its parts. */
export type ForkPoint = string;

/**
 * Returns the complete messages up to and including the fork point, or all without one. Returns undefined if the point
 * is not found. Omits an answer that is still being written.
 */
export async function collectMessages(
  history: AsyncIterable<Message>,
  point: ForkPoint | undefined,
): Promise<Message[] | undefined> {
  const messages: Message[] = [];
  for await (const message of history) {
    if (isComplete(message)) messages.push(message);
    if (point !== undefined && hasClientId(message, point)) return messages;
  }
  return point === undefined ? messages : undefined;
}

/** Copies the messages to another session under new ids. The session must not be open. */
export async function copyMessages(
  store: SessionStore,
  sessionId: SessionId,
  messages: readonly Message[],
): Promise<void> {
  const opened = await store.openSession(sessionId);
  if (opened.status !== "opened") throw new Error(`the new session ${sessionId} is ${opened.status}`);
  const { writer } = opened;
  try {
    const ids = createIds(messages);
    for (const { info, parts } of messages) {
      const id = ids.get(info.id) ?? info.id;
      writer.putMessage(replaceParentId({ ...info, id, sessionId }, ids));
      for (const part of parts) writer.putPart(id, replacePartIds(part, ids));
      writer.seal(id);
    }
  } finally {
    await writer.close();
  }
}

type NewIds = ReadonlyMap<MessageId, MessageId>;

/** Returns a new id for each message, in the same sort order. */
function createIds(messages: readonly Message[]): NewIds {
  const ids = new Map<MessageId, MessageId>();
  let last: MessageId | undefined;
  for (const { info } of messages) {
    last = last === undefined ? newMessageId() : messageIdAfter(last);
    ids.set(info.id, last);
  }
  return ids;
}

function replaceParentId(info: MessageInfo, ids: NewIds): MessageInfo {
  if (info.role === "user") {
    // Clients know the id from the source.
    const { injectId: _, ...own } = info;
    return own;
  }
  return { ...info, parentId: ids.get(info.parentId) ?? info.parentId };
}

function replacePartIds(part: Part, ids: NewIds): Part {
  const id = newPartId();
  if (part.type === "tool" && hasRunningJob(part.state))
    return { ...endJob(part, createForkedEnd(part)), id };
  if (part.type !== "compaction") return { ...part, id };
  const { keepFrom, question, carried } = part;
  const jobs = carried?.jobs?.map((job) => ({ ...job, messageId: ids.get(job.messageId) ?? job.messageId }));
  return {
    ...part,
    id,
    ...(carried && jobs && { carried: { ...carried, jobs } }),
    ...(keepFrom && { keepFrom: ids.get(keepFrom) ?? keepFrom }),
    ...(question && { question: ids.get(question) ?? question }),
  };
}

/** A fork does not own the jobs of its source. */
function createForkedEnd(part: ToolPart): JobEnd {
  return {
    ...createLostEnd(part),
    description: "belongs to the session that this one was forked from, and cannot be used here",
  };
}

/** Returns the info that a fork copies from its source. Its cost starts at zero. */
export function inheritInfo(source: SessionInfo): Partial<SessionInfo> {
  const { agent, model, approval, autoCompact, givenPrompt, title } = source;
  return {
    agent,
    ...(model && { model }),
    // Differs from new sessions, which start with the configured setting.
    approval: approval ?? "ask",
    ...(autoCompact !== undefined && { autoCompact }),
    ...(givenPrompt !== undefined && { givenPrompt }),
    ...(title !== undefined && { title: `${title} (fork)`, titleSource: "generated" as const }),
  };
}

function isComplete({ info }: Message): boolean {
  return info.role === "user" || info.time.completed !== undefined;
}
