import { type Deferred, deferred } from "../base/async.ts";

/** Thrown after too long a silence. */
export class Stall extends Error {}

/** So many batches may wait for whoever takes them; beyond it, whoever brings more waits. */
const roomForBatches = 16;

/**
 * What came of something that streams and was not taken yet. Taking throws as soon as the signal aborts or nothing
 * has come for too long, whatever those who bring it do. One timer and one listener serve for all of it.
 */
export class Arrivals<T> {
  readonly #signal: AbortSignal;
  readonly #silenceMs: number;
  readonly #batches: (readonly T[])[] = [];
  #taker: Deferred<readonly T[] | undefined> | undefined;
  #room: Deferred<void> | undefined;
  #silence: NodeJS.Timeout | undefined;
  #end: { readonly thrown?: unknown } | undefined;

  constructor(signal: AbortSignal, silenceMs: number) {
    this.#signal = signal;
    this.#silenceMs = silenceMs;
    signal.addEventListener("abort", this.#abort, { once: true });
  }

  /** Returns a promise where whoever brings more must wait for it. */
  push(batch: readonly T[]): Promise<void> | undefined {
    if (batch.length === 0 || this.#end !== undefined) return undefined;
    const taker = this.#taker;
    this.#taker = undefined;
    if (taker !== undefined) taker.resolve(batch);
    else this.#batches.push(batch);
    if (this.#batches.length < roomForBatches) return undefined;
    this.#room ??= deferred<void>();
    return this.#room.promise;
  }

  /** Nothing more comes; with `thrown`, taking throws it behind what came before. */
  end(end: { readonly thrown?: unknown } = {}): void {
    this.#end ??= end;
    if (this.#taker !== undefined) this.#settle(this.#taker);
    this.#makeRoom();
  }

  /** The next batch, as soon as there is one; undefined at the end. */
  async take(): Promise<readonly T[] | undefined> {
    this.#signal.throwIfAborted();
    const batch = this.#batches.shift();
    if (batch !== undefined) {
      this.#makeRoom();
      return batch;
    }
    const taker = deferred<readonly T[] | undefined>();
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

  #settle(taker: Deferred<readonly T[] | undefined>): void {
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
