import { fileURLToPath } from "node:url";

const file = (path: string) => fileURLToPath(new URL(path, import.meta.url));

/** The program with a clock that follows the file `clock` in its home; see `moving-clock.ts`. */
export const withMovingClock: readonly string[] = [
  "--import",
  file("moving-clock.ts"),
  file("../../../bin/fairlead.js"),
  "acp",
];
