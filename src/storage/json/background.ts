import { errorFields } from "../../base/error-fields.ts";
import { Serial } from "../../base/async.ts";
import type { Log } from "../../base/log.ts";

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
  #due: NodeJS.Timeout | undefined;
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

  /** Starts after so long, if nothing starts it before. Whoever ends the process finishes it. */
  startWithin(delayMs: number): void {
    if (this.#isQueued) return;
    this.#due ??= setTimeout(() => this.start(), delayMs).unref();
  }

  /** Resolves when everything asked for so far is done; rejects when it could not be. */
  finish(): Promise<void> {
    return this.#serial.run(async () => {
      this.#isQueued = false;
      clearTimeout(this.#due);
      this.#due = undefined;
      await this.#work();
      this.#isFailing = false;
    });
  }

  /** Begins what is due and resolves when nothing of it is under way, done or not. */
  async settle(): Promise<void> {
    if (this.#due !== undefined) this.start();
    await this.#serial.idle();
  }

  /** Runs something else while the work does not. */
  between<T>(task: () => Promise<T>): Promise<T> {
    return this.#serial.run(task);
  }

  #fail(thrown: unknown): void {
    if (!this.#isFailing) this.#log.warn(`${this.#name} failed, will be tried again`, errorFields(thrown));
    this.#isFailing = true;
  }
}
