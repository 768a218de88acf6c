import type { SessionId } from "../message/ids.ts";
import type { Message, SessionInfo } from "../message/message.ts";
import type { SessionStore } from "../storage/session-store.ts";

/** Where a fork ends: at the message with this id, or the one that holds the part with this id. */
export type ForkPoint = string;

/**
 * What a fork takes over: whole messages from the first up to the one that is named, that one included; without a
 * name all of them. Undefined where no message is meant. An answer that is still being written is left out.
 */
export async function messagesUpTo(
  history: AsyncIterable<Message>,
  point: ForkPoint | undefined,
): Promise<Message[] | undefined> {
  const messages: Message[] = [];
  for await (const message of history) {
    if (isWhole(message)) messages.push(message);
    if (point !== undefined && isMeant(message, point)) return messages;
  }
  return point === undefined ? messages : undefined;
}

/** Stores the messages as those of another session, which nobody writes yet. */
export async function copyMessages(
  store: SessionStore,
  sessionId: SessionId,
  messages: readonly Message[],
): Promise<void> {
  const opened = await store.openSession(sessionId);
  if (opened.status !== "opened") throw new Error(`the new session ${sessionId} is ${opened.status}`);
  const { writer } = opened;
  try {
    for (const { info, parts } of messages) {
      writer.putMessage({ ...info, sessionId });
      for (const part of parts) writer.putPart(info.id, part);
      writer.seal(info.id);
    }
  } finally {
    await writer.close();
  }
}

/** What the fork has of its source beside messages and folders. Its own cost begins at nothing. */
export function inherited(source: SessionInfo): Partial<SessionInfo> {
  const { agent, model, approval, autoCompact, givenPrompt, title } = source;
  return {
    agent,
    ...(model && { model }),
    ...(approval && { approval }),
    ...(autoCompact !== undefined && { autoCompact }),
    ...(givenPrompt !== undefined && { givenPrompt }),
    ...(title !== undefined && { title: `${title} (fork)`, titleSource: "generated" as const }),
  };
}

function isMeant({ info, parts }: Message, point: ForkPoint): boolean {
  return info.id === point || parts.some(({ id }) => id === point);
}

function isWhole({ info }: Message): boolean {
  return info.role === "user" || info.time.completed !== undefined;
}
