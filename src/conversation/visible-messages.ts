import { hasClientId, isReverted, type Message, type Revert } from "../message/message.ts";

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

/** Where a replay begins: at a message, or after it. The id is that of the message or of one of its parts. */
export interface ReplayStart {
  readonly id: string;
  readonly isInclusive: boolean;
}

/** Omits what precedes the start. Throws `missing()` at the end if no message has its id. */
export async function* omitBefore(
  messages: AsyncIterable<Message>,
  start: ReplayStart,
  missing: () => Error,
): AsyncGenerator<Message> {
  let isFound = false;
  for await (const message of messages) {
    if (isFound) yield message;
    else if (hasClientId(message, start.id)) {
      isFound = true;
      yield cutMessage(message, start);
    }
  }
  if (!isFound) throw missing();
}

/** Returns the message with the parts that the replay shows. */
function cutMessage({ info, parts }: Message, { id, isInclusive }: ReplayStart): Message {
  const index = parts.findIndex((part) => part.id === id);
  if (index !== -1) return { info, parts: parts.slice(isInclusive ? index : index + 1) };
  return { info, parts: isInclusive ? parts : parts.filter(({ type }) => type === "compaction") };
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
