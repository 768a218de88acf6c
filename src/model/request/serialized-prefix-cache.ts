import { toJson } from "../../base/text/json.ts";

/** Maximum size of a cached conversation. Larger ones, mostly with images, are serialized for each request. */
const cacheLimitBytes = 8 * 1024 * 1024;

const smallestBytes = 16 * 1024;

/**
 * Caches the serialized messages of a conversation. Each step sends all messages again; only the ones after the common
 * prefix with the previous request are serialized.
 */
export class SerializedPrefixCache {
  #messages: unknown[] = [];
  /** End offset of each message in the buffer. */
  #ends: number[] = [];
  #bytes = Buffer.alloc(0);

  /** Returns the elements of a JSON array of the messages, without brackets. The bytes never change afterwards. */
  encode(messages: readonly unknown[]): Uint8Array {
    let known = 0;
    while (known < this.#messages.length && isSame(this.#messages[known], messages[known])) known++;
    if (known < this.#messages.length) this.#cut(known);
    for (const message of messages.slice(known)) this.#add(message);
    const encoded = this.#bytes.subarray(0, this.#length);
    if (this.#length > cacheLimitBytes) this.#cut(0);
    return encoded;
  }

  get #length(): number {
    return this.#ends.at(-1) ?? 0;
  }

  /** Truncates into a new buffer: the old one may still be in use by a request. */
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

/** Compares two JSON values. Identical references, which most are, compare in constant time. */
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
