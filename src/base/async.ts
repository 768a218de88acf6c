/** A promise with its resolve and reject functions. */
export interface Deferred<T> {
  readonly promise: Promise<T>;
  resolve(value: T): void;
  reject(reason: unknown): void;
}

export function deferred<T>(): Deferred<T> {
  return Promise.withResolvers<T>();
}

/** Runs tasks one at a time, in the order given. A failed task does not stop the next one. */
export class Serial {
  #last: Promise<unknown> = Promise.resolve();
  #unfinished = 0;

  /** Whether no task runs or waits. */
  get isIdle(): boolean {
    return this.#unfinished === 0;
  }

  run<T>(task: () => Promise<T> | T): Promise<T> {
    this.#unfinished++;
    const next = this.#last.then(task, task);
    const finish = () => void this.#unfinished--;
    this.#last = next.then(finish, finish);
    return next;
  }

  /** Resolves when all tasks given so far have ended. */
  idle(): Promise<void> {
    return this.#last.then(ignore);
  }
}

/** One {@link Serial} per key, dropped when idle. */
export class KeyedSerial {
  readonly #queues = new Map<string, { queue: Serial; users: number }>();

  isBusy(key: string): boolean {
    return this.#queues.has(key);
  }

  async run<T>(key: string, task: () => Promise<T> | T): Promise<T> {
    const entry = this.#queues.get(key) ?? { queue: new Serial(), users: 0 };
    this.#queues.set(key, entry);
    entry.users++;
    try {
      return await entry.queue.run(task);
    } finally {
      entry.users--;
      if (entry.users === 0) this.#queues.delete(key);
    }
  }
}

/** Resolves after the delay, or immediately when the signal aborts. Never rejects. */
export function sleep(delayMs: number, signal?: AbortSignal): Promise<void> {
  if (signal?.aborted) return Promise.resolve();
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", done);
      resolve();
    };
    const timer = setTimeout(done, delayMs);
    signal?.addEventListener("abort", done, { once: true });
  });
}

/** Returns the promise's value, or `fallback` when the signal aborts first. Does not cancel the promise. */
export function orWhenAborted<T, F>(promise: Promise<T>, signal: AbortSignal, fallback: F): Promise<T | F> {
  if (signal.aborted) {
    promise.catch(ignore);
    return Promise.resolve(fallback);
  }
  return new Promise((resolve, reject) => {
    const onAbort = () => resolve(fallback);
    signal.addEventListener("abort", onAbort, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener("abort", onAbort));
  });
}

/** Returns the promise's value, or `fallback` after the delay. Does not cancel the promise. */
export function orAfter<T, F>(promise: Promise<T>, delayMs: number, fallback: F): Promise<T | F> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => resolve(fallback), delayMs);
    promise.then(resolve, reject).finally(() => clearTimeout(timer));
  });
}

/**
 * Destroys a stream or request when the signal aborts, without emitting an error. Node's own `signal` option for
 * requests emits an error when it aborts after the last byte arrived and before it was read; with no listener, that
 * error ends the process.
 */
export function destroyOnAbort(stream: Destroyable, signal: AbortSignal): void {
  const destroy = () => stream.destroy();
  if (signal.aborted) return destroy();
  signal.addEventListener("abort", destroy, { once: true });
  stream.once("close", () => signal.removeEventListener("abort", destroy));
}

interface Destroyable {
  destroy(): void;
  once(event: "close", listener: () => void): unknown;
}

/** Collects all items into a list. */
export async function collect<T>(items: AsyncIterable<T>): Promise<T[]> {
  const collected: T[] = [];
  for await (const item of items) collected.push(item);
  return collected;
}

function ignore(): void {}

/** Returns a function that loads once and shares the result. A failed load is retried on the next call. */
export function once<T>(load: () => Promise<T>): () => Promise<T> {
  let loaded: Promise<T> | undefined;
  return async () => {
    try {
      return await (loaded ??= load());
    } catch (error) {
      loaded = undefined;
      throw error;
    }
  };
}
