import { type Deferred, deferred, type Backpressure } from "../../base/async.ts";

/** Thrown after too long a silence. */
export class StreamTimeoutError extends Error {}

/** So much may wait for whoever takes it; beyond it, whoever brings more waits. */
const mostWaiting = 16;

/** How it ended: all of it was taken, or what was thrown, by those who brought it or by whoever took it. */
export type Outcome = { readonly by: "all" } | { readonly by: "bringer" | "taker"; readonly thrown: unknown };

/**
 * What comes of something that streams, handed on in order, one at a time. What comes while nobody works on what came
 * before is handed on before `push` returns: a delta that comes alone waits for nobody. It ends as soon as the signal
 * aborts or nothing has come for too long, whatever those who bring it do. One timer and one listener serve for all.
 */
export class OrderedQueue<T> {
  readonly #signal: AbortSignal;
  readonly #take: (arrival: T) => Backpressure;
  readonly #waiting: T[] = [];
  readonly #over: Deferred<Outcome> = deferred<Outcome>();
  readonly #silenceMs: number;
  #silence: NodeJS.Timeout;
  /** When somebody brought or finished something last. */
  #heardAt = performance.now();
  #isTaking = false;
  #drained: Deferred<void> | undefined;
  #end: Outcome | undefined;
  #isOver = false;

  constructor(limits: { signal: AbortSignal; silenceMs: number }, take: (arrival: T) => Backpressure) {
    this.#signal = limits.signal;
    this.#take = take;
    this.#silenceMs = limits.silenceMs;
    this.#silence = setTimeout(this.#listen, limits.silenceMs);
    if (limits.signal.aborted) this.#abort();
    else limits.signal.addEventListener("abort", this.#abort, { once: true });
  }

  /** Resolves when nothing more is handed on. */
  get over(): Promise<Outcome> {
    return this.#over.promise;
  }

  /** Returns a promise where whoever brings more must wait for it. */
  push(arrival: T): Backpressure {
    if (this.#isOver || this.#end !== undefined) return undefined;
    if (!this.#isTaking) {
      this.#heardAt = performance.now();
      this.#hand(arrival);
      return undefined;
    }
    this.#waiting.push(arrival);
    if (this.#waiting.length < mostWaiting) return undefined;
    this.#drained ??= deferred<void>();
    return this.#drained.promise;
  }

  /** Nothing more comes; what came before is still handed on. */
  end(end: Outcome): void {
    this.#end ??= end;
    if (!this.#isTaking) this.#settle(this.#end);
  }

  #hand(arrival: T): void {
    try {
      const backpressure = this.#take(arrival);
      if (backpressure === undefined) return;
      this.#isTaking = true;
      backpressure.then(this.#goOn, this.#refuse);
    } catch (thrown) {
      this.#refuse(thrown);
    }
  }

  readonly #goOn = (): void => {
    this.#isTaking = false;
    if (this.#signal.aborted) this.#abort();
    while (!this.#isTaking && !this.#isOver) {
      const next = this.#waiting.shift();
      if (next === undefined) break;
      this.#hand(next);
    }
    if (this.#waiting.length < mostWaiting) this.#resume();
    if (this.#isTaking || this.#isOver) return;
    if (this.#end === undefined) this.#heardAt = performance.now();
    else this.#settle(this.#end);
  };

  #resume(): void {
    this.#drained?.resolve();
    this.#drained = undefined;
  }

  #settle(outcome: Outcome): void {
    this.#isOver = true;
    this.#waiting.length = 0;
    clearTimeout(this.#silence);
    this.#signal.removeEventListener("abort", this.#abort);
    this.#resume();
    this.#over.resolve(outcome);
  }

  readonly #refuse = (thrown: unknown): void => this.#settle({ by: "taker", thrown });

  /** What is being worked on is let be, and nothing is handed on behind it. */
  readonly #abort = (): void => {
    if (!this.#isTaking) this.#settle({ by: "bringer", thrown: this.#signal.reason });
  };

  /** While somebody works on what came, it is no silence. The timer is not set anew for each arrival, which costs. */
  readonly #listen = (): void => {
    const restMs = this.#isTaking ? this.#silenceMs : this.#heardAt + this.#silenceMs - performance.now();
    if (restMs > 0) this.#silence = setTimeout(this.#listen, Math.ceil(restMs));
    else this.#settle({ by: "bringer", thrown: new StreamTimeoutError() });
  };
}
