import type { Message } from "../message/message.ts";

/** The compaction that a user message asked for, if it did. */
export function compactionOf(message: Message) {
  return message.parts.find((part) => part.type === "compaction");
}

/** Whether the message is a summary that was written to its end. */
export function isFinishedSummary(message: Message): boolean {
  const { info } = message;
  return (
    info.role === "assistant" && info.summary === true && info.finish === "stop" && info.error === undefined
  );
}

/**
 * What the model still sees, oldest first, read lazily from the newest message back: everything after the newest
 * finished compaction, that compaction's question and summary, and the messages it kept verbatim.
 */
export async function loadVisible(newestFirst: AsyncIterable<Message>): Promise<Message[]> {
  const after: Message[] = [];
  const kept: Message[] = [];
  let summary: Message | undefined;
  let question: Message | undefined;
  let keepFrom: string | undefined;
  for await (const message of newestFirst) {
    if (question !== undefined) {
      if (keepFrom === undefined || message.info.id < keepFrom) break;
      kept.push(message);
    } else if (summary === undefined) {
      if (isFinishedSummary(message)) summary = message;
      else after.push(message);
    } else if (summary.info.role === "assistant" && message.info.id === summary.info.parentId) {
      question = message;
      keepFrom = compactionOf(message)?.keepFrom;
      if (keepFrom === undefined) break;
    }
  }
  const compacted = [question, summary].filter((message) => message !== undefined);
  return [...compacted, ...kept.reverse(), ...after.reverse()];
}
