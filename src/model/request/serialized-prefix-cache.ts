import { toJson } from "../../base/text/json.ts";

/** Conversations that are longer, mostly by their images, are not kept but made bytes anew for each request. */
const keptLimitBytes = 8 * 1024 * 1024;

const smallestBytes = 16 * 1024;

/**
 * The messages of one conversation as they were last sent. Each step sends all of them again: what was sent before is
 * bytes already, so that a step costs what is new in it and not what its conversation is long.
 */
export class SerializedPrefixCache {
  #messages: unknown[] = [];
  /** Where each of them ends. */
  #ends: number[] = [];
  #bytes = Buffer.alloc(0);

  /** What stands between the brackets of a JSON array of them. The bytes stay as they are, whatever is sent later. */
  encode(messages: readonly unknown[]): Uint8Array {
    let known = 0;
    while (known < this.#messages.length && isSame(this.#messages[known], messages[known])) known++;
    if (known < this.#messages.length) this.#cut(known);
    for (const message of messages.slice(known)) this.#add(message);
    const encoded = this.#bytes.subarray(0, this.#length);
    if (this.#length > keptLimitBytes) this.#cut(0);
    return encoded;
  }

  get #length(): number {
    return this.#ends.at(-1) ?? 0;
  }

  /** Goes on from these in other memory: what was there may not be sent yet. */
  #cut(known: number): void {
    this.#messages.length = known;
    this.#ends.length = known;
    this.#bytes = Buffer.from(this.#bytes.subarray(0, this.#length));
  }

  #add(message: unknown): void {
    const text = (this.#ends.length > 0 ? "," : "") + toJson(message);
    const start = this.#length;
    const end = start + Buffer.byteLength(text);
    if (end > this.#bytes.length) this.#grow(end);
    this.#bytes.write(text, start);
    this.#messages.push(message);
    this.#ends.push(end);
  }

  #grow(needed: number): void {
    const bytes = Buffer.allocUnsafeSlow(Math.max(2 * needed, smallestBytes));
    this.#bytes.copy(bytes, 0, 0, this.#length);
    this.#bytes = bytes;
  }
}

/** Whether they are the same JSON. Texts that are one and the same in memory, as most are, compare at once. */
function isSame(one: unknown, other: unknown): boolean {
  if (one === other) return true;
  if (!isObject(one) || !isObject(other) || Array.isArray(one) !== Array.isArray(other)) return false;
  const keys = Object.keys(one);
  const others = Object.keys(other);
  return (
    keys.length === others.length &&
    keys.every((key, index) => key === others[index] && isSame(one[key], other[key]))
  );
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null;
}
