import { inject } from "vitest";

type RunLength = "quick" | "usual" | "long";

declare module "vitest" {
  interface ProvidedContext {
    runLength: RunLength;
  }
}

const runLength = inject("runLength");

/** Share of the full number of generated cases in a normal run. */
const shares: Record<RunLength, number> = { quick: 1 / 50, usual: 1 / 5, long: 1 };

/** Whether this is `npm run test:long`, which runs the full number of repetitions. */
export const isLong = runLength === "long";

/** Number of cases per property. */
export const tries = (inFull: number): number => Math.ceil(inFull * shares[runLength]);
