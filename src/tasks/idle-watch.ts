/** Tells when nothing happened for a while. Time in which the person is waited for does not count. */
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

  /** Something happened. */
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
