import type { KeyedSerial } from "../base/async.ts";

/** Prompts that came before the setups of their session were answered: they wait for these, in their order. */
export class PendingPrompts {
  readonly #setups: KeyedSerial;
  readonly #waiting = new Map<string, Set<AbortController>>();

  constructor(setups: KeyedSerial) {
    this.#setups = setups;
  }

  has(sessionId: string): boolean {
    return this.#waiting.has(sessionId);
  }

  /** Those that wait now are not to begin. */
  cancel(sessionId: string): void {
    for (const waiting of this.#waiting.get(sessionId) ?? []) waiting.abort();
  }

  /** Resolves behind the setups that came before, with whether the prompt is still to begin. */
  async wait(sessionId: string): Promise<boolean> {
    const own = new AbortController();
    const all = this.#waiting.get(sessionId) ?? new Set();
    this.#waiting.set(sessionId, all.add(own));
    try {
      // The answer to a setup is on its way only a few promises after its end.
      await this.#setups.run(sessionId, () => new Promise((resolve) => void setImmediate(resolve)));
      return !own.signal.aborted;
    } finally {
      all.delete(own);
      if (all.size === 0) this.#waiting.delete(sessionId);
    }
  }
}
