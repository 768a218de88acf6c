import { fileURLToPath } from "node:url";

/** The program with a clock that follows the file `clock` in its home; see `moving-clock.ts`. */
export const withMovingClock: readonly string[] = [
  "--import",
  new URL("moving-clock.ts", import.meta.url).href,
  fileURLToPath(new URL("../../../bin/fairlead.js", import.meta.url)),
  "acp",
];
