import { errorFields } from "../../base/error-fields.ts";
import type { Log } from "../../base/log.ts";

/** Runs tasks in order: at once, or after earlier ones that wait for the disk. A failed task does not stop the next. */
export class TaskQueue {
  readonly #log: Log;
  readonly #waiting: (() => void | Promise<void>)[] = [];
  /** Resolves when no task waits any more; undefined while the queue is idle. */
  #idle: Promise<void> | undefined;

  constructor(log: Log) {
    this.#log = log;
  }

  /** Runs a task now if no earlier one waits. */
  run(task: () => void): void {
    if (this.#idle !== undefined) this.#waiting.push(task);
    else this.#attempt(task);
  }

  /** Runs a task that waits; later tasks run after it. */
  runAsync(task: () => Promise<void>): void {
    this.#waiting.push(task);
    this.#idle ??= this.#work();
  }

  /** Resolves when all tasks so far have ended. */
  async idle(): Promise<void> {
    await this.#idle;
  }

  #attempt(task: () => void): void {
    try {
      task();
    } catch (error) {
      this.#fail(error);
    }
  }

  async #work(): Promise<void> {
    for (let task = this.#waiting.shift(); task; task = this.#waiting.shift()) {
      try {
        await task();
      } catch (error) {
        this.#fail(error);
      }
    }
    this.#idle = undefined;
  }

  #fail(error: unknown): void {
    this.#log.error("update failed", errorFields(error));
  }
}
