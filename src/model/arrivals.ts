import { type Deferred, deferred } from "../base/async.ts";

/** Thrown after too long a silence. */
export class Stall extends Error {}

/** So much may wait for whoever takes it; beyond it, whoever brings more waits. */
const room = 16;

/**
 * What came of something that streams and was not taken yet, none of it undefined. Taking throws as soon as the signal
 * aborts or nothing has come for too long, whatever those who bring it do. One timer and one listener serve for all.
 */
export class Arrivals<T> {
  readonly #signal: AbortSignal;
  readonly #silenceMs: number;
  readonly #waiting: T[] = [];
  #taker: Deferred<T | undefined> | undefined;
  #room: Deferred<void> | undefined;
  #silence: NodeJS.Timeout | undefined;
  #end: { readonly thrown?: unknown } | undefined;

  constructor(signal: AbortSignal, silenceMs: number) {
    this.#signal = signal;
    this.#silenceMs = silenceMs;
    signal.addEventListener("abort", this.#abort, { once: true });
  }

  /** Returns a promise where whoever brings more must wait for it. */
  push(arrival: T): Promise<void> | undefined {
    if (this.#end !== undefined) return undefined;
    const taker = this.#taker;
    this.#taker = undefined;
    if (taker !== undefined) taker.resolve(arrival);
    else this.#waiting.push(arrival);
    if (this.#waiting.length < room) return undefined;
    this.#room ??= deferred<void>();
    return this.#room.promise;
  }

  /** Nothing more comes; with `thrown`, taking throws it behind what came before. */
  end(end: { readonly thrown?: unknown } = {}): void {
    this.#end ??= end;
    if (this.#taker !== undefined) this.#settle(this.#taker);
    this.#makeRoom();
  }

  /** The next, as soon as there is one; undefined at the end. */
  async take(): Promise<T | undefined> {
    this.#signal.throwIfAborted();
    const arrival = this.#waiting.shift();
    if (arrival !== undefined) {
      if (this.#waiting.length < room) this.#makeRoom();
      return arrival;
    }
    const taker = deferred<T | undefined>();
    if (this.#end !== undefined) this.#settle(taker);
    else {
      this.#taker = taker;
      if (this.#silence === undefined) this.#silence = setTimeout(this.#stall, this.#silenceMs);
      else this.#silence.refresh();
    }
    return taker.promise;
  }

  /** Nobody takes any more; what still comes is dropped. */
  close(): void {
    clearTimeout(this.#silence);
    this.#signal.removeEventListener("abort", this.#abort);
    this.end();
  }

  #settle(taker: Deferred<T | undefined>): void {
    this.#taker = undefined;
    if (this.#end !== undefined && "thrown" in this.#end) taker.reject(this.#end.thrown);
    else taker.resolve(undefined);
  }

  #makeRoom(): void {
    this.#room?.resolve();
    this.#room = undefined;
  }

  readonly #abort = () => this.#taker?.reject(this.#signal.reason);

  /** While somebody works on what came, nobody waits and it is no silence. */
  readonly #stall = () => this.#taker?.reject(new Stall());
}
