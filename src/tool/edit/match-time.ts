import { timeLimit } from "../../workspace/search/time-limit.ts";
import { ToolFailure } from "../tool.ts";

/** Nothing else of the program goes on meanwhile, not even a cancel. */
const matchLimitMs = 2_000;
/** Characters to look through times characters to look for, below which no search takes long. */
const harmlessSize = 20_000_000;

/** Runs a search for `wanted` characters among `length`. Throws {@link ToolFailure} where it takes too long. */
export function runWithMatchLimit<T extends object>(length: number, wanted: number, search: () => T): T {
  if (length * wanted <= harmlessSize) return search();
  const limited = timeLimit(
    matchLimitMs,
    () =>
      new ToolFailure(
        "Finding the old text takes too long in a file of this size. Give a shorter piece of it, or use a command. Nothing was changed.",
      ),
  );
  return limited(search);
}
