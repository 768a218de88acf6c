import { errorFields } from "../../base/error-fields.ts";
import type { Log } from "../../base/log.ts";

/** Runs tasks that wait for the disk, one after another. A failed task does not stop the next. */
export class TaskQueue {
  readonly #log: Log;
  readonly #waiting: (() => Promise<void>)[] = [];
  /** Resolves when no task waits any more; undefined while the queue is idle. */
  #running: Promise<void> | undefined;

  constructor(log: Log) {
    this.#log = log;
  }

  /** Whether no task runs or waits. */
  get isIdle(): boolean {
    return this.#running === undefined;
  }

  add(task: () => Promise<void>): void {
    this.#waiting.push(task);
    this.#running ??= this.#run();
  }

  /** Resolves when all tasks so far have ended. */
  async idle(): Promise<void> {
    await this.#running;
  }

  async #run(): Promise<void> {
    for (let task = this.#waiting.shift(); task; task = this.#waiting.shift()) {
      try {
        await task();
      } catch (error) {
        this.#log.error("update failed", errorFields(error));
      }
    }
    this.#running = undefined;
  }
}
