import { createTimeLimit } from "../../workspace/search/time-limit.ts";
import { ToolFailure } from "../tool.ts";

/** The search blocks the process; not even a cancel is handled meanwhile. */
const matchLimitMs = 2_000;
/** Text length times needle length, below which no search takes long. */
const harmlessSize = 20_000_000;

/** Runs a search for `wanted` characters in a text of `length`. Throws {@link ToolFailure} if it takes too long. */
export function runWithMatchLimit<T extends object>(length: number, wanted: number, search: () => T): T {
  if (length * wanted <= harmlessSize) return search();
  const limited = createTimeLimit(
    matchLimitMs,
    () =>
      new ToolFailure(
        "Finding the old text takes too long in a file of this size. Give a shorter part of it, or use a command. Nothing was changed.",
      ),
  );
  return limited(search);
}
