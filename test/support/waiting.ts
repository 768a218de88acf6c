/** Timeout in milliseconds for expected events. Generous, because a busy machine is not a failure. */
const defaultDeadlineMs = 10_000;

/** Notifies waiting tests of a change, so that they need not poll. */
export class Bell {
  readonly #waiting = new Set<() => void>();

  ring(): void {
    for (const check of this.#waiting) check();
  }

  /**
   * Resolves to the first value that `probe` finds, now or after a later notification. Rejects after the
   * deadline, naming `what`.
   */
  until<T>(probe: () => T | undefined, what: string, deadlineMs = defaultDeadlineMs): Promise<T> {
    return new Promise((resolve, reject) => {
      const stop = () => {
        clearTimeout(timer);
        this.#waiting.delete(check);
      };
      const check = () => {
        try {
          const found = probe();
          if (found === undefined) return;
          stop();
          resolve(found);
        } catch (error) {
          stop();
          reject(error instanceof Error ? error : new Error(String(error)));
        }
      };
      const timer = setTimeout(() => {
        stop();
        reject(new Error(`Waited ${deadlineMs} ms for ${what}.`));
      }, deadlineMs);
      this.#waiting.add(check);
      check();
    });
  }
}

/** Resolves to the promise's value. Rejects after the deadline, naming `what`. */
export async function within<T>(
  promise: Promise<T>,
  what: string,
  deadlineMs = defaultDeadlineMs,
): Promise<T> {
  const { promise: late, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => reject(new Error(`Waited ${deadlineMs} ms for ${what}.`)), deadlineMs);
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}
