import { setTimeout as delay } from "node:timers/promises";

/** Limits per second. A sender that exceeds one waits until the second is over. */
const messagesPerSecond = 2_000;
const bytesPerSecond = 64 * 1024 * 1024;

/** Limits how much of a server's output is read per second: the reader awaits `count` before it reads on. */
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
