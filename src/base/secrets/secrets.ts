import { splitAt, type TextOrBytes, textOf } from "./text-or-bytes.ts";

/**
 * Minimum length of a secret; {@link minMixedLength} applies when it has both letters and digits. Shorter values may
 * be ordinary words.
 */
const minPlainLength = 16;
const minMixedLength = 8;

const replacement = "[key]";

/** The keys that this process knows, to be removed from its output. */
export class Secrets {
  readonly #values = new Set<string>();

  /** Ignores values that are too short or plain to be keys: they would match ordinary text. */
  add(values: Iterable<string>): void {
    for (const value of values) if (isSecret(value)) this.#values.add(value);
  }

  isIn(chunk: TextOrBytes): boolean {
    return [...this.#values].some((value) => chunk.includes(value));
  }

  redact(text: string): string {
    // The longer key first: when one key is a prefix of another, nothing of the longer one may remain.
    const values = [...this.#values].sort((one, other) => other.length - one.length);
    return values.reduce((clean, value) => clean.replaceAll(value, replacement), text);
  }

  /** Redacts streamed text. Holds back an end that may be the start of a key until the next chunk. */
  redactStream(): RedactedStream {
    let held = "";
    return {
      push: (chunk) => {
        const clean = held === "" && !this.isIn(chunk) ? chunk : this.redact(held + textOf(chunk));
        const [settled, open] = splitAt(clean, clean.length - this.#partialKeyLength(clean));
        held = textOf(open);
        return settled;
      },
      end: () => {
        const rest = held;
        held = "";
        return rest;
      },
    };
  }

  /** Length of the longest suffix of the chunk that is a prefix of a key. */
  #partialKeyLength(chunk: TextOrBytes): number {
    let longest = 0;
    for (const value of this.#values) {
      const most = Math.min(value.length - 1, chunk.length);
      const end = textOf(splitAt(chunk, chunk.length - most)[1]);
      for (let length = most; length > longest; length--) {
        if (end.endsWith(value.slice(0, length))) longest = length;
      }
    }
    return longest;
  }
}

export interface RedactedStream {
  push(chunk: TextOrBytes): TextOrBytes;
  /** Returns the text that was still held back. */
  end(): string;
}

function isSecret(value: string): boolean {
  if (value.length >= minPlainLength) return true;
  return value.length >= minMixedLength && /\d/.test(value) && /[A-Za-z]/.test(value);
}
