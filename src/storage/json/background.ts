import { errorFields } from "../../base/error-fields.ts";
import { Serial } from "../../base/async.ts";
import type { Log } from "../../base/log.ts";

/**
 * Runs work in the background, one run at a time. Requests during a run share the next run.
 * A failure is logged once per streak and is not lost: {@link finish} tries again and rejects with it.
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

  /** Starts after the delay, unless started before. The process must call {@link finish} before it ends. */
  startWithin(delayMs: number): void {
    if (this.#isQueued) return;
    this.#due ??= setTimeout(() => this.start(), delayMs).unref();
  }

  /** Resolves when all requested work is done; rejects when it failed. */
  finish(): Promise<void> {
    return this.#serial.run(async () => {
      this.#isQueued = false;
      clearTimeout(this.#due);
      this.#due = undefined;
      await this.#work();
      this.#isFailing = false;
    });
  }

  /** Starts delayed work and resolves when no run is active, whether it succeeded or not. */
  async settle(): Promise<void> {
    if (this.#due !== undefined) this.start();
    await this.#serial.idle();
  }

  /** Runs a task while the work is not running. */
  between<T>(task: () => Promise<T>): Promise<T> {
    return this.#serial.run(task);
  }

  #fail(thrown: unknown): void {
    if (!this.#isFailing) this.#log.warn(`${this.#name} failed, will be retried`, errorFields(thrown));
    this.#isFailing = true;
  }
}
