/**
 * Runs tasks in order, one per turn of the event loop: what a task does before it waits for the system is done when the
 * next task runs, although both were given at once.
 */
export class TaskRunner {
  readonly #waiting: (() => void)[] = [];
  #isRunning = false;

  run(task: () => void): void {
    this.#waiting.push(task);
    if (!this.#isRunning) this.#runNext();
  }

  #runNext(): void {
    const task = this.#waiting.shift();
    this.#isRunning = task !== undefined;
    if (task === undefined) return;
    setImmediate(() => this.#runNext());
    task();
  }
}
