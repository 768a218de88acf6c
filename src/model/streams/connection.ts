import { ProviderFailure, stallError } from "../failure.ts";

/** The connection of one call. Ends with the request, or when the provider sends nothing for too long. */
export class Connection {
  readonly #request: AbortSignal;
  readonly #controller = new AbortController();
  readonly #silence: NodeJS.Timeout;
  #isHeld = false;

  constructor(request: AbortSignal, stallMs: number) {
    this.#request = request;
    this.#silence = setTimeout(() => {
      if (this.#isHeld) this.#silence.refresh();
      else this.#controller.abort(new ProviderFailure(stallError(stallMs)));
    }, stallMs);
    if (request.aborted) this.#abort();
    request.addEventListener("abort", this.#abort, { once: true });
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** The provider sent something. */
  touch(): void {
    this.#isHeld = false;
    this.#silence.refresh();
  }

  /** Stops the timeout until the next `touch`: the time that the consumer needs does not count. */
  hold(): void {
    this.#isHeld = true;
  }

  /** Stops the timeout. What is left of an answer may still be drained. */
  close(): void {
    clearTimeout(this.#silence);
    this.#request.removeEventListener("abort", this.#abort);
  }

  /** Closes the connection of a call that failed. */
  cut(): void {
    this.#controller.abort();
  }

  readonly #abort = (): void => this.#controller.abort(this.#request.reason);
}
