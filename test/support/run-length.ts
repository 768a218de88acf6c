import { inject } from "vitest";

declare module "vitest" {
  interface ProvidedContext {
    isLong: boolean;
  }
}

/** Whether this is `npm run test:long`, in which what repeats the same many times does so in full. */
export const isLong = inject("isLong");

/** How often a property is tried: a fifth of its full number in the usual run. */
export const tries = (inFull: number): number => (isLong ? inFull : Math.ceil(inFull / 5));
