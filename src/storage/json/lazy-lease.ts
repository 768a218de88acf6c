import type { Lease } from "./lock.ts";

export type HeldLease = Extract<Lease, { status: "held" }>;

/** A lease that is acquired on first use and released once. */
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

  /** Resolves when the lease is held. Rejects when acquiring fails; the next call tries again. */
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

  /** Releases the lease if it was acquired, and prevents acquiring it later. */
  async release(): Promise<void> {
    this.#isReleased = true;
    // A failed acquisition was already reported to the caller of `take`.
    const held = await this.#held?.catch(() => undefined);
    this.#held = undefined;
    await held?.release();
  }
}
