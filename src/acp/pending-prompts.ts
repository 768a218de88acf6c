import type { KeyedSerial } from "../base/async.ts";

/** Prompts that wait for earlier setup requests of their session, in order. */
export class PendingPrompts {
  readonly #setups: KeyedSerial;
  readonly #waiting = new Map<string, Set<AbortController>>();

  constructor(setups: KeyedSerial) {
    this.#setups = setups;
  }

  has(sessionId: string): boolean {
    return this.#waiting.has(sessionId);
  }

  /** Cancels the waiting prompts of a session. */
  cancel(sessionId: string): void {
    for (const waiting of this.#waiting.get(sessionId) ?? []) waiting.abort();
  }

  /** Resolves after the earlier setups: true if the prompt should start, false if it was cancelled. */
  async wait(sessionId: string): Promise<boolean> {
    const own = new AbortController();
    const all = this.#waiting.get(sessionId) ?? new Set();
    this.#waiting.set(sessionId, all.add(own));
    try {
      // The response to a setup is sent a few microtasks after its end.
      await this.#setups.run(sessionId, () => new Promise((resolve) => void setImmediate(resolve)));
      return !own.signal.aborted;
    } finally {
      all.delete(own);
      if (all.size === 0) this.#waiting.delete(sessionId);
    }
  }
}
