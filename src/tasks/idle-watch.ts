/** Calls back after a time without activity. Time spent waiting for the user does not count. */
export class IdleWatch {
  readonly #limitMs: number;
  readonly #onIdle: () => void;
  #timer: NodeJS.Timeout | undefined;
  #pauses = 0;
  #isRunning = false;

  constructor(limitMs: number, onIdle: () => void) {
    this.#limitMs = limitMs;
    this.#onIdle = onIdle;
  }

  start(): void {
    this.#isRunning = true;
    this.touch();
  }

  stop(): void {
    this.#isRunning = false;
    clearTimeout(this.#timer);
  }

  /** Restarts the timer. */
  touch(): void {
    if (!this.#isRunning || this.#pauses > 0) return;
    if (this.#timer === undefined) this.#timer = setTimeout(this.#onIdle, this.#limitMs);
    else this.#timer.refresh();
  }

  async pauseDuring<T>(wait: () => Promise<T>): Promise<T> {
    this.#pauses++;
    clearTimeout(this.#timer);
    this.#timer = undefined;
    try {
      return await wait();
    } finally {
      this.#pauses--;
      this.touch();
    }
  }
}
