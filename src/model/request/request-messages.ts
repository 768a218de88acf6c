import type { ModelMessage } from "ai";
import type { Converted } from "./to-model-messages.ts";

/**
 * The messages of one request. The SDK writes each by itself, whatever stands around it: what it wrote for an earlier
 * request of the conversation is taken as it is, so that a step costs what is new in it.
 */
export class RequestMessages {
  readonly #all: readonly Converted[];
  readonly #fresh: readonly Converted[];

  constructor(all: readonly Converted[]) {
    this.#all = all;
    const fresh = all.filter(({ written }) => written === undefined);
    // Without any message the SDK sends nothing.
    const last = all.findLast(({ messages }) => messages.length > 0);
    this.#fresh = fresh.some(({ messages }) => messages.length > 0) || last === undefined ? fresh : [last];
  }

  /** Those that the SDK has to write. */
  get fresh(): ModelMessage[] {
    return this.#fresh.flatMap(({ messages }) => messages);
  }

  /** All of them, by those that the SDK wrote now, which begin with the instructions. */
  join(written: readonly unknown[]): unknown[] {
    const lengths = this.#fresh.map(({ messages }) =>
      messages.reduce((sum, one) => sum + writtenLength(one), 0),
    );
    let at = written.length - lengths.reduce((sum, length) => sum + length, 0);
    if (at !== 0 && at !== 1) throw new Error("the SDK writes messages in another way than it did");
    const joined = written.slice(0, at);
    for (const [index, one] of this.#fresh.entries())
      one.written = written.slice(at, (at += lengths[index] ?? 0));
    for (const one of this.#all) if (one.written !== undefined) joined.push(...one.written);
    return joined;
  }
}

/** Each result of a call is a message of its own. */
const writtenLength = ({ role, content }: ModelMessage): number => (role === "tool" ? content.length : 1);
