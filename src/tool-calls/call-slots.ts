/** Schedules calls in the order of their start: shared calls run concurrently, an exclusive call runs alone. */
export class CallSlots {
  #exclusive: Promise<void> = Promise.resolve();
  #shared: Promise<void>[] = [];

  async run<T>(concurrency: "shared" | "exclusive", task: () => Promise<T>): Promise<T> {
    const { promise: ended, resolve: end } = Promise.withResolvers<void>();
    const before = this.#enqueue(concurrency, ended);
    try {
      await before;
      return await task();
    } finally {
      end();
    }
  }

  /** Returns a promise for the calls to wait for. */
  #enqueue(concurrency: "shared" | "exclusive", ended: Promise<void>): Promise<unknown> {
    const before = this.#exclusive;
    if (concurrency === "shared") {
      this.#shared.push(ended);
      return before;
    }
    const all = Promise.all([before, ...this.#shared]);
    this.#exclusive = ended;
    this.#shared = [];
    return all;
  }
}
