import { Serial } from "../base/async.ts";
import { messageOf } from "../base/errors.ts";
import type { Log } from "../base/log.ts";

/**
 * Work that is begun without waiting for it, one run at a time; what is asked for during a run shares the next one.
 * A failure is logged once per streak and never lost: whoever waits with {@link finish} tries again and gets it.
 */
export class Background {
  readonly #work: () => Promise<void>;
  readonly #log: Log;
  readonly #name: string;
  readonly #serial = new Serial();
  #isQueued = false;
  #isDue = false;
  #isFailing = false;

  constructor({ name, work, log }: { name: string; work: () => Promise<void>; log: Log }) {
    this.#name = name;
    this.#work = work;
    this.#log = log;
  }

  start(): void {
    if (this.#isQueued) return;
    this.#isQueued = true;
    this.finish().catch((thrown: unknown) => this.#fail(thrown));
  }

  /** Starts at the end of this turn of the event loop, if nothing starts it before. */
  startSoon(): void {
    if (this.#isQueued || this.#isDue) return;
    this.#isDue = true;
    setImmediate(() => {
      if (this.#isDue) this.start();
    });
  }

  /** Resolves when everything asked for so far is done; rejects when it could not be. */
  finish(): Promise<void> {
    return this.#serial.run(async () => {
      this.#isQueued = false;
      this.#isDue = false;
      await this.#work();
      this.#isFailing = false;
    });
  }

  /** Runs something else while the work does not. */
  between<T>(task: () => Promise<T>): Promise<T> {
    return this.#serial.run(task);
  }

  #fail(thrown: unknown): void {
    if (!this.#isFailing)
      this.#log.warn(`${this.#name} failed, will be tried again`, { reason: messageOf(thrown) });
    this.#isFailing = true;
  }
}
