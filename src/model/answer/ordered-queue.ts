import { type Deferred, deferred, type Backpressure } from "../../base/async.ts";

/** The producer sent nothing for longer than the limit. */
export class StreamTimeoutError extends Error {}

/** Maximum number of queued items before `push` returns a promise. */
const queueLimit = 16;

/** How the queue ended: all items were consumed, or the producer or the consumer threw. */
export type Outcome =
  | { readonly by: "all" }
  | { readonly by: "producer" | "consumer"; readonly thrown: unknown };

/**
 * Passes streamed items to a consumer in order, one at a time.
 *
 * - If the consumer is idle, `push` passes the item on synchronously.
 * - Ends when the signal aborts or the producer is silent for too long, whatever the producer does.
 * - Uses one timer and one abort listener for all items.
 */
export class OrderedQueue<T> {
  readonly #signal: AbortSignal;
  readonly #consume: (arrival: T) => Backpressure;
  readonly #queue: T[] = [];
  readonly #over: Deferred<Outcome> = deferred<Outcome>();
  readonly #silenceMs: number;
  #silence: NodeJS.Timeout;
  /** When an item was last pushed or consumed. */
  #activeAt = performance.now();
  #isConsuming = false;
  #drained: Deferred<void> | undefined;
  #end: Outcome | undefined;
  #isOver = false;

  constructor(limits: { signal: AbortSignal; silenceMs: number }, take: (arrival: T) => Backpressure) {
    this.#signal = limits.signal;
    this.#consume = take;
    this.#silenceMs = limits.silenceMs;
    this.#silence = setTimeout(this.#checkSilence, limits.silenceMs);
    if (limits.signal.aborted) this.#abort();
    else limits.signal.addEventListener("abort", this.#abort, { once: true });
  }

  /** Resolves when no more items are passed on. */
  get over(): Promise<Outcome> {
    return this.#over.promise;
  }

  /** Adds an item. Await the result before pushing more. */
  push(arrival: T): Backpressure {
    if (this.#isOver || this.#end !== undefined) return undefined;
    if (!this.#isConsuming) {
      this.#activeAt = performance.now();
      this.#pass(arrival);
      return undefined;
    }
    this.#queue.push(arrival);
    if (this.#queue.length < queueLimit) return undefined;
    this.#drained ??= deferred<void>();
    return this.#drained.promise;
  }

  /** Closes the queue for new items. Queued items are still passed on. */
  end(end: Outcome): void {
    this.#end ??= end;
    if (!this.#isConsuming) this.#settle(this.#end);
  }

  #pass(arrival: T): void {
    try {
      const backpressure = this.#consume(arrival);
      if (backpressure === undefined) return;
      this.#isConsuming = true;
      backpressure.then(this.#continue, this.#failConsumer);
    } catch (thrown) {
      this.#failConsumer(thrown);
    }
  }

  readonly #continue = (): void => {
    this.#isConsuming = false;
    if (this.#signal.aborted) this.#abort();
    while (!this.#isConsuming && !this.#isOver) {
      const next = this.#queue.shift();
      if (next === undefined) break;
      this.#pass(next);
    }
    if (this.#queue.length < queueLimit) this.#resume();
    if (this.#isConsuming || this.#isOver) return;
    if (this.#end === undefined) this.#activeAt = performance.now();
    else this.#settle(this.#end);
  };

  #resume(): void {
    this.#drained?.resolve();
    this.#drained = undefined;
  }

  #settle(outcome: Outcome): void {
    this.#isOver = true;
    this.#queue.length = 0;
    clearTimeout(this.#silence);
    this.#signal.removeEventListener("abort", this.#abort);
    this.#resume();
    this.#over.resolve(outcome);
  }

  readonly #failConsumer = (thrown: unknown): void => this.#settle({ by: "consumer", thrown });

  /** Lets the consumer finish its current item, and passes on no more. */
  readonly #abort = (): void => {
    if (!this.#isConsuming) this.#settle({ by: "producer", thrown: this.#signal.reason });
  };

  /** Ends the queue after too long a silence; time spent in the consumer does not count. Not restarted per item, for speed. */
  readonly #checkSilence = (): void => {
    const restMs = this.#isConsuming ? this.#silenceMs : this.#activeAt + this.#silenceMs - performance.now();
    if (restMs > 0) this.#silence = setTimeout(this.#checkSilence, Math.ceil(restMs));
    else this.#settle({ by: "producer", thrown: new StreamTimeoutError() });
  };
}
