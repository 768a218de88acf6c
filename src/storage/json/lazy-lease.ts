import type { Lease } from "./lock.ts";

export type HeldLease = Extract<Lease, { status: "held" }>;

/** A lease that is taken when it is first needed, and given back once. */
export class LazyLease {
  readonly #acquire: () => Promise<HeldLease>;
  #held: Promise<HeldLease> | undefined;
  #isReleased = false;

  constructor(acquire: () => Promise<HeldLease>) {
    this.#acquire = acquire;
  }

  static of(held: HeldLease): LazyLease {
    const lease = new LazyLease(async () => held);
    lease.#held = Promise.resolve(held);
    return lease;
  }

  /** Resolves when it is held. Rejects as acquiring does; the next call tries again. */
  async take(): Promise<void> {
    if (this.#isReleased) throw new Error("a lease was taken again after it was given back");
    this.#held ??= this.#acquire();
    const taking = this.#held;
    try {
      await taking;
    } catch (thrown) {
      if (this.#held === taking) this.#held = undefined;
      throw thrown;
    }
  }

  /** Gives it back, if it was taken; nobody would do that with one that is taken later. */
  async release(): Promise<void> {
    this.#isReleased = true;
    // One that could not be taken was told to whoever asked for it.
    const held = await this.#held?.catch(() => undefined);
    this.#held = undefined;
    await held?.release();
  }
}
