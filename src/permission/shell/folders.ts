import type { Argument } from "./word.ts";

/** The folders that the shell may be in; undefined where that cannot be known. */
export type Bases = readonly string[] | undefined;

/** Where the shell may be after a command that succeeded, and after one that failed. */
export interface Outcome {
  success: Bases;
  failure: Bases;
}

/** Folders that the shell may be in before it counts as unknown. */
const baseLimit = 8;

export function union(left: Bases, right: Bases): Bases {
  return left && right && limited([...left, ...right]);
}

export function limited(bases: readonly string[]): Bases {
  const unique = [...new Set(bases)];
  return unique.length > baseLimit ? undefined : unique;
}

/** `!` makes a success of a failure. */
export function swapped(outcome: Outcome, isNegated: boolean): Outcome {
  return isNegated ? { success: outcome.failure, failure: outcome.success } : outcome;
}

/** Where `cd` goes; nothing for the home folder. */
export function cdTargets(args: readonly Argument[]): readonly Argument[] {
  return args.filter((arg) => !/^-[LPe@]*$/.test(arg.text) && arg.text !== "--").slice(0, 1);
}
