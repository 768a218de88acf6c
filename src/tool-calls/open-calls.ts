/** The calls of a session that have not ended, each of which can be ended by itself. */
export class OpenCalls {
  readonly #open = new Map<string, AbortController>();

  /** From here on it can be cancelled, also before it runs. */
  add(callId: string): void {
    this.#open.set(callId, new AbortController());
  }

  has(callId: string): boolean {
    return this.#open.has(callId);
  }

  /** False for a call that is not open. */
  cancel(callId: string): boolean {
    const controller = this.#open.get(callId);
    controller?.abort();
    return controller !== undefined;
  }

  /** Runs the call under a signal that ends with the turn's, or by {@link cancel}. */
  async run<T>(
    callId: string,
    turn: AbortSignal,
    run: (signal: AbortSignal) => Promise<T>,
  ): Promise<{ result: T; isCancelled: boolean }> {
    const own = this.#open.get(callId)?.signal;
    try {
      const result = await run(own === undefined ? turn : AbortSignal.any([turn, own]));
      return { result, isCancelled: own?.aborted === true && !turn.aborted };
    } finally {
      this.remove(callId);
    }
  }

  remove(callId: string): void {
    this.#open.delete(callId);
  }
}
