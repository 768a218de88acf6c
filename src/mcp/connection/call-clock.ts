/** Maximum duration of a call, whatever progress it reports. */
const longestMs = 60 * 60_000;

/**
 * Aborts a request after too long a silence. Progress resets the timer; questions to the user pause it. `signal` also
 * aborts with the caller's.
 */
export class CallClock {
  readonly #timeoutMs: number;
  readonly #abort = new AbortController();
  readonly #longest: NodeJS.Timeout;
  readonly #outer: AbortSignal | undefined;
  #timer: NodeJS.Timeout | undefined;
  #stops = 0;
  #isUp = false;

  constructor(timeoutMs: number, outer?: AbortSignal) {
    this.#timeoutMs = timeoutMs;
    this.#outer = outer;
    this.#longest = setTimeout(() => this.#ring(), longestMs);
    outer?.addEventListener("abort", this.#onAbort, { once: true });
    if (outer?.aborted) this.#onAbort();
    this.restart();
  }

  get signal(): AbortSignal {
    return this.#abort.signal;
  }

  /** Whether the timer expired. */
  get isUp(): boolean {
    return this.#isUp;
  }

  restart(): void {
    clearTimeout(this.#timer);
    if (this.#stops === 0) this.#timer = setTimeout(() => this.#ring(), this.#timeoutMs);
  }

  /** Pauses the timer until the task is done. */
  async pauseDuring<T>(task: () => Promise<T>): Promise<T> {
    this.#stops++;
    clearTimeout(this.#timer);
    try {
      return await task();
    } finally {
      this.#stops--;
      if (!this.#abort.signal.aborted) this.restart();
    }
  }

  /** Must be called when the request is over. */
  end(): void {
    this.#stops++;
    clearTimeout(this.#timer);
    clearTimeout(this.#longest);
    this.#outer?.removeEventListener("abort", this.#onAbort);
  }

  readonly #onAbort = () => this.#abort.abort();

  #ring(): void {
    this.#isUp = true;
    this.#abort.abort();
  }
}
