import { setFlagsFromString } from "node:v8";

/**
 * Makes V8 collect rather than take more memory. It asks for both settings whenever a heap would grow, so they count
 * from now on; to be set from the beginning they would have to stand on a command line that others write. Figures are
 * in docs/performance.md.
 */
export function keepHeapSmall(): void {
  setFlagsFromString("--semi-space-growth-factor=1");
  setFlagsFromString("--optimize-for-size");
}
