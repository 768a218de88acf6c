import { divide, type TextOrBytes, textOf } from "./text-or-bytes.ts";

/** A secret has at least this many characters, or {@link shortestMixed} with letters and digits; words are none. */
const shortestPlain = 16;
const shortestMixed = 8;

const replacement = "[key]";

/** The keys that this process knows, to be kept out of whatever it hands on. */
export class Secrets {
  readonly #values = new Set<string>();

  /** Values too short or too plain to be keys are left out: they would be found anywhere. */
  add(values: Iterable<string>): void {
    for (const value of values) if (isSecret(value)) this.#values.add(value);
  }

  isIn(piece: TextOrBytes): boolean {
    return [...this.#values].some((value) => piece.includes(value));
  }

  redact(text: string): string {
    // Of two keys of which one begins like the other, the longer one first: nothing of it must stay.
    const values = [...this.#values].sort((one, other) => other.length - one.length);
    return values.reduce((clean, value) => clean.replaceAll(value, replacement), text);
  }

  /** For a text that comes in pieces: what may be the beginning of a key waits for the next piece. */
  redactStream(): RedactedStream {
    let held = "";
    return {
      push: (piece) => {
        const clean = held === "" && !this.isIn(piece) ? piece : this.redact(held + textOf(piece));
        const [settled, open] = divide(clean, clean.length - this.#openEnd(clean));
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

  /** Length of the longest end of the piece with which a key begins. */
  #openEnd(piece: TextOrBytes): number {
    let longest = 0;
    for (const value of this.#values) {
      const most = Math.min(value.length - 1, piece.length);
      const end = textOf(divide(piece, piece.length - most)[1]);
      for (let length = most; length > longest; length--) {
        if (end.endsWith(value.slice(0, length))) longest = length;
      }
    }
    return longest;
  }
}

export interface RedactedStream {
  push(piece: TextOrBytes): TextOrBytes;
  /** What was still held back. */
  end(): string;
}

function isSecret(value: string): boolean {
  if (value.length >= shortestPlain) return true;
  return value.length >= shortestMixed && /\d/.test(value) && /[A-Za-z]/.test(value);
}
