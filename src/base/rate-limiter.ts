import { setTimeout as delay } from "node:timers/promises";

/** Who says more than this within a second waits until the second is over. */
const messagesPerSecond = 2_000;
const bytesPerSecond = 64 * 1024 * 1024;

/** Lets a second have only so much of what a server says: its reader waits for `count` before it reads on. */
export class RateLimiter {
  #start = performance.now();
  #messages = 0;
  #bytes = 0;

  async count(messages: number, bytes: number, signal?: AbortSignal | null): Promise<void> {
    const now = performance.now();
    if (now - this.#start >= 1_000) this.#begin(now);
    this.#messages += messages;
    this.#bytes += bytes;
    if (this.#messages < messagesPerSecond && this.#bytes < bytesPerSecond) return;
    await delay(this.#start + 1_000 - now, undefined, signal ? { signal } : {});
    this.#begin(performance.now());
  }

  #begin(now: number): void {
    this.#start = now;
    this.#messages = 0;
    this.#bytes = 0;
  }
}
