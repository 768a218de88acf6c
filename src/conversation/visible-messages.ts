import { isReverted, type Message, type Revert } from "../message/message.ts";

/** Returns the compaction that a user message requested, if any. */
export function compactionOf(message: Message) {
  return message.parts.find((part) => part.type === "compaction");
}

/** Omits undone messages. */
export async function* omitReverted(
  messages: AsyncIterable<Message>,
  revert: Revert | undefined,
): AsyncGenerator<Message> {
  for await (const message of messages) if (!isReverted(message.info.id, revert)) yield message;
}

/** True for a complete summary. */
export function isFinishedSummary(message: Message): boolean {
  const { info } = message;
  return (
    info.role === "assistant" && info.summary === true && info.finish === "stop" && info.error === undefined
  );
}

/** True for a message of an older compaction, which a newer one replaces. */
function isOfCompaction(message: Message): boolean {
  return (
    compactionOf(message) !== undefined ||
    (message.info.role === "assistant" && message.info.summary === true)
  );
}

/** Returns the messages that a compaction leaves verbatim, in order. */
export function verbatimMessages(compaction: Message, messages: readonly Message[]): Message[] {
  const { keepFrom, question } = compactionOf(compaction) ?? {};
  return messages.filter(
    (message) =>
      message.info.id < compaction.info.id &&
      !isOfCompaction(message) &&
      (message.info.id === question || (keepFrom !== undefined && message.info.id >= keepFrom)),
  );
}

/**
 * Loads the messages that the model sees, oldest first, reading lazily from the newest back: the newest finished
 * compaction's question and summary, the messages that it left verbatim, and everything after it.
 */
export async function loadVisible(newestFirst: AsyncIterable<Message>): Promise<Message[]> {
  const after: Message[] = [];
  const before: Message[] = [];
  let summary: Message | undefined;
  let compaction: Message | undefined;
  for await (const message of newestFirst) {
    if (compaction !== undefined) {
      if (message.info.id < oldestVerbatimId(compaction)) break;
      before.push(message);
    } else if (summary === undefined) {
      if (isFinishedSummary(message)) summary = message;
      else after.push(message);
    } else if (summary.info.role === "assistant" && message.info.id === summary.info.parentId) {
      compaction = message;
    }
  }
  if (compaction === undefined || summary === undefined) return after.reverse();
  return [compaction, summary, ...verbatimMessages(compaction, before.reverse()), ...after.reverse()];
}

/** Returns the oldest id that a compaction leaves verbatim; greater than any id when there is none. */
function oldestVerbatimId(compaction: Message): string {
  const { keepFrom, question } = compactionOf(compaction) ?? {};
  return [keepFrom, question].filter((id) => id !== undefined).sort()[0] ?? "n";
}
