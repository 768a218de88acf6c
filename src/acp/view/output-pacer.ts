import type { Backpressure } from "../../base/async.ts";

/**
 * Limits live output to one update per interval: the first chunk at once, later chunks merged. A timer runs only while
 * output is waiting.
 */
export class OutputPacer {
  readonly #intervalMs: number;
  /** "all" sends each character once; a number N sends the last N characters each time. */
  readonly #keep: "all" | number;
  readonly #send: (text: string) => Backpressure;
  #text = "";
  #dropped = false;
  #isNew = false;
  #lastSent = Number.NEGATIVE_INFINITY;
  #timer: NodeJS.Timeout | undefined;
  #sending: Promise<void> = Promise.resolve();

  constructor(pace: { intervalMs: number; keep: "all" | number }, send: (text: string) => Backpressure) {
    this.#intervalMs = pace.intervalMs;
    this.#keep = pace.keep;
    this.#send = send;
  }

  /** Adds output. Await the result to respect backpressure. */
  async add(delta: string): Promise<void> {
    this.#text += delta;
    this.#isNew = true;
    this.#bound();
    const wait = this.#lastSent + this.#intervalMs - performance.now();
    if (wait <= 0) return this.#flush();
    this.#timer ??= setTimeout(() => void this.#flush(), wait);
    await this.#sending;
  }

  /** Sends waiting output in mode "all". A waiting tail is dropped, because the complete output follows. */
  async end(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    if (this.#keep === "all") await this.#flush();
    await this.#sending;
    this.#isNew = false;
  }

  #bound(): void {
    if (this.#keep === "all" || this.#text.length <= this.#keep * 2) return;
    this.#text = this.#text.slice(-this.#keep);
    this.#dropped = true;
  }

  async #flush(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    if (!this.#isNew) return;
    this.#isNew = false;
    this.#lastSent = performance.now();
    const text = this.#take();
    this.#sending = this.#sending.then(() => this.#send(text));
    await this.#sending;
  }

  #take(): string {
    if (this.#keep === "all") {
      const text = this.#text;
      this.#text = "";
      return text;
    }
    const tail = this.#text.slice(-this.#keep);
    const cut = this.#dropped || tail.length < this.#text.length;
    return cut ? `…\n${tail.slice(tail.indexOf("\n") + 1)}` : tail;
  }
}
