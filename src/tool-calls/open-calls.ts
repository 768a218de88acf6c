/** The running calls of a session, each of which can be cancelled individually. */
export class OpenCalls {
  readonly #open = new Map<string, AbortController>();

  /** Makes the call cancellable, even before it runs. */
  add(callId: string): void {
    this.#open.set(callId, new AbortController());
  }

  has(callId: string): boolean {
    return this.#open.has(callId);
  }

  /** Returns false for a call that is not open. */
  cancel(callId: string): boolean {
    const controller = this.#open.get(callId);
    controller?.abort();
    return controller !== undefined;
  }

  /** Runs the call with a signal that aborts with the turn or by {@link cancel}. */
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
