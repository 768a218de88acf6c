/**
 * Limits live output to one update per interval: the first chunk at once, later chunks merged. A timer runs only while
 * output is waiting.
 */
export class OutputPacer {
  readonly #intervalMs: number;
  /** "all" sends each character once; a number N sends the last N characters each time. */
  readonly #keep: "all" | number;
  readonly #send: (text: string) => void;
  #text = "";
  #dropped = false;
  #isNew = false;
  #lastSent = Number.NEGATIVE_INFINITY;
  #timer: NodeJS.Timeout | undefined;

  constructor(pace: { intervalMs: number; keep: "all" | number }, send: (text: string) => void) {
    this.#intervalMs = pace.intervalMs;
    this.#keep = pace.keep;
    this.#send = send;
  }

  add(delta: string): void {
    this.#text += delta;
    this.#isNew = true;
    this.#bound();
    const wait = this.#lastSent + this.#intervalMs - performance.now();
    if (wait <= 0) this.#flush();
    else this.#timer ??= setTimeout(() => this.#flush(), wait);
  }

  /** Sends waiting output in mode "all". A waiting tail is dropped, because the complete output follows. */
  end(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    if (this.#keep === "all") this.#flush();
    this.#isNew = false;
  }

  #bound(): void {
    if (this.#keep === "all" || this.#text.length <= this.#keep * 2) return;
    this.#text = this.#text.slice(-this.#keep);
    this.#dropped = true;
  }

  #flush(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    if (!this.#isNew) return;
    this.#isNew = false;
    this.#lastSent = performance.now();
    this.#send(this.#take());
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
