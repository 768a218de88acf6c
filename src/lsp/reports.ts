import { deferred, type Deferred, orAfter } from "../base/async.ts";
import type { Document } from "./documents.ts";

/** How long a server may be silent about a text that it was given. */
export const silenceLimitMs = 10_000;
/** A server may report in several pieces. They are complete when nothing came for this long, or for twice its longest pause so far. */
export const quietMs = { first: 1_000, least: 400, most: 1_500 };

/** When a server that reports by itself has said what it has to say. */
export class Reports {
  readonly #quietMs: typeof quietMs;
  #longestPauseMs: number | undefined;
  #lastReport = 0;
  #bell: Deferred<void> = deferred();

  constructor(quiet: typeof quietMs = quietMs) {
    this.#quietMs = quiet;
  }

  /** It has said something of a document. */
  note(document: Document): void {
    const now = performance.now();
    const { reportedAt, isSettled } = document;
    if (reportedAt !== undefined && !isSettled)
      this.#longestPauseMs = Math.max(this.#longestPauseMs ?? 0, now - reportedAt);
    document.reportedAt = now;
    if (!isSettled) this.#lastReport = now;
  }

  /** Whoever waits looks again. */
  ring(): void {
    const bell = this.#bell;
    this.#bell = deferred();
    bell.resolve();
  }

  /** Resolves when the bell is rung, at the latest at `end` (as `performance.now()`). */
  async next(end: number): Promise<void> {
    await orAfter(this.#bell.promise, Math.max(1, end - performance.now()), undefined);
  }

  /** Waits until all that is to come of the documents has come. Throws what `assertAlive` throws. */
  async complete(documents: readonly Document[], assertAlive: () => void): Promise<void> {
    const end = performance.now() + silenceLimitMs;
    while (true) {
      assertAlive();
      const isComplete = documents.every(({ reportedAt }) => reportedAt !== undefined);
      const until = isComplete ? Math.min(end, this.#lastReport + this.#pauseMs()) : end;
      if (until <= performance.now()) break;
      await this.next(until);
    }
    this.#longestPauseMs ??= 0;
    for (const document of documents) document.isSettled = true;
  }

  #pauseMs(): number {
    const { first, least, most } = this.#quietMs;
    const pause = this.#longestPauseMs;
    return pause === undefined ? first : Math.min(most, Math.max(least, 2 * pause));
  }
}
