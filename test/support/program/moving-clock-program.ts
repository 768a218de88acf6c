import { fileURLToPath } from "node:url";

const file = (path: string) => fileURLToPath(new URL(path, import.meta.url));

/** The program with a clock that the file `clock` in its home moves; see `moving-clock.ts`. */
export const withMovingClock: readonly string[] = [
  "--import",
  file("moving-clock.ts"),
  file("../../../bin/fairlead.js"),
  "acp",
];
