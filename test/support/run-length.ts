import { inject } from "vitest";

type RunLength = "quick" | "usual" | "long";

declare module "vitest" {
  interface ProvidedContext {
    runLength: RunLength;
  }
}

const runLength = inject("runLength");

/** Part of the full number of generated cases that each run tries. */
const shares: Record<RunLength, number> = { quick: 1 / 50, usual: 1 / 5, long: 1 };

/** Whether this is `npm run test:long`, in which what repeats the same many times does so in full. */
export const isLong = runLength === "long";

/** How often a property is tried. */
export const tries = (inFull: number): number => Math.ceil(inFull * shares[runLength]);
