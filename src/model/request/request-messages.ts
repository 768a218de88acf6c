import type { ModelMessage } from "ai";
import type { ConvertedMessage } from "./to-model-messages.ts";

/**
 * The messages of one request. The SDK converts each message independently of the others, so conversions of earlier
 * requests are reused and a step converts only new messages.
 */
export class RequestMessages {
  readonly #all: readonly ConvertedMessage[];
  readonly #fresh: readonly ConvertedMessage[];

  constructor(all: readonly ConvertedMessage[]) {
    this.#all = all;
    const fresh = all.filter(({ written }) => written === undefined);
    // The SDK sends no request without messages.
    const last = all.findLast(({ messages }) => messages.length > 0);
    this.#fresh = fresh.some(({ messages }) => messages.length > 0) || last === undefined ? fresh : [last];
  }

  /** The messages that the SDK has to convert. */
  get fresh(): ModelMessage[] {
    return this.#fresh.flatMap(({ messages }) => messages);
  }

  /** Returns all messages: the newly converted ones, which begin with the instructions, and the reused ones. */
  join(written: readonly unknown[]): unknown[] {
    const lengths = this.#fresh.map(({ messages }) =>
      messages.reduce((sum, one) => sum + countWritten(one), 0),
    );
    let at = written.length - lengths.reduce((sum, length) => sum + length, 0);
    if (at !== 0 && at !== 1) throw new Error("the SDK converted an unexpected number of messages");
    const joined = written.slice(0, at);
    for (const [index, one] of this.#fresh.entries())
      one.written = written.slice(at, (at += lengths[index] ?? 0));
    for (const one of this.#all) if (one.written !== undefined) joined.push(...one.written);
    return joined;
  }
}

/** Returns how many messages the SDK creates: one for each tool result. */
const countWritten = ({ role, content }: ModelMessage): number => (role === "tool" ? content.length : 1);
