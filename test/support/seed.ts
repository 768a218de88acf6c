import * as fc from "fast-check";

/**
 * Fixed seed, so that each run has the same cases and fails only because of a change. `PROPERTY_SEED` selects
 * others: a number, or `random`.
 */
const wanted = process.env.PROPERTY_SEED ?? "1";
if (wanted !== "random") fc.configureGlobal({ seed: Number(wanted) });
