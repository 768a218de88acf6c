/** How many bytes the results of a step may have for the model. */
export interface ResultLimits {
  readonly each: number;
  /** All together. */
  readonly step: number;
}

/** Even where nothing is left, a result has so many bytes: errors must be readable. */
export const leastShareBytes = 256;

/** What one result may have. */
export interface ResultShare {
  readonly bytes: number;
  /** Notes what the result has in the end. */
  use(text: string): void;
  /** Leaves what was not used to others. */
  settle(): void;
}

/** Shares out what the results of one step may have, to calls as they start. */
export class ResultBudget {
  readonly #each: number;
  #left: number;

  constructor(limits: ResultLimits | undefined) {
    this.#each = limits?.each ?? Number.MAX_SAFE_INTEGER;
    this.#left = limits?.step ?? Number.MAX_SAFE_INTEGER;
  }

  take(): ResultShare {
    const bytes = Math.max(leastShareBytes, Math.min(this.#each, this.#left));
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
