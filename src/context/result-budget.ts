/** Byte limits for the results of a step. */
export interface ResultLimits {
  readonly each: number;
  /** Limit for all results together. */
  readonly step: number;
}

/** Minimum bytes of a result, so that errors stay readable. */
export const minShareBytes = 256;

/** The share of one result. */
export interface ResultShare {
  readonly bytes: number;
  /** Records the final size. */
  use(text: string): void;
  /** Returns unused bytes to the budget. */
  settle(): void;
}

/** Divides a step's byte budget among its calls, as they start. */
export class ResultBudget {
  readonly #each: number;
  #left: number;

  constructor(limits: ResultLimits | undefined) {
    this.#each = limits?.each ?? Number.MAX_SAFE_INTEGER;
    this.#left = limits?.step ?? Number.MAX_SAFE_INTEGER;
  }

  take(): ResultShare {
    const bytes = Math.max(minShareBytes, Math.min(this.#each, this.#left));
    let used = 0;
    this.#left -= bytes;
    return {
      bytes,
      use: (text) => {
        used = Buffer.byteLength(text);
      },
      settle: () => {
        this.#left += bytes - used;
      },
    };
  }
}
