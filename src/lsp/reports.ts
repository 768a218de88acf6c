import { deferred, type Deferred, orAfter } from "../base/async.ts";
import type { Document } from "./documents.ts";

/** How long to wait for the first diagnostics of a text. */
export const firstReportMs = 10_000;
/**
 * Diagnostics may come in several batches. They are complete after this quiet time, or after twice the
 * longest pause.
 */
export const quietMs = { first: 1_000, least: 400, most: 1_500 };

/** Detects when a server has finished pushing diagnostics. */
export class DiagnosticsWaiter {
  readonly #quietMs: typeof quietMs;
  #longestPauseMs: number | undefined;
  #lastReport = 0;
  #wakeUp: Deferred<void> = deferred();

  constructor(quiet: typeof quietMs = quietMs) {
    this.#quietMs = quiet;
  }

  /** Records diagnostics of a document. */
  note(document: Document): void {
    const now = performance.now();
    const { reportedAt, isSettled } = document;
    if (reportedAt !== undefined && !isSettled)
      this.#longestPauseMs = Math.max(this.#longestPauseMs ?? 0, now - reportedAt);
    document.reportedAt = now;
    if (!isSettled) this.#lastReport = now;
  }

  /** Wakes the waiting caller. */
  wake(): void {
    const bell = this.#wakeUp;
    this.#wakeUp = deferred();
    bell.resolve();
  }

  /** Resolves when woken or at `end`, a `performance.now()` time. */
  async next(end: number): Promise<void> {
    await orAfter(this.#wakeUp.promise, Math.max(1, end - performance.now()), undefined);
  }

  /** Waits until the diagnostics of the documents are complete. Throws errors of `assertAlive`. */
  async waitUntilComplete(documents: readonly Document[], assertAlive: () => void): Promise<void> {
    const end = performance.now() + firstReportMs;
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
