import { setTimeout as delay } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";

/** What a compilation that runs beside the program takes at most, as far as was seen. */
const compilationMs = 10;

/**
 * Resolves when V8 compiles nothing beside the program any more. A process that ends while a compilation there waits
 * for a collection of garbage never ends: each waits for the other (nodejs/node#54918).
 */
export async function stopCompiling(): Promise<void> {
  setFlagsFromString("--no-maglev");
  setFlagsFromString("--no-opt");
  await delay(compilationMs);
}

/**
 * Makes V8 collect rather than take more memory. It asks for both settings whenever a heap would grow, so they count
 * from now on; to be set from the beginning they would have to stand on a command line that others write. Figures are
 * in docs/performance.md.
 */
export function keepHeapSmall(): void {
  setFlagsFromString("--semi-space-growth-factor=1");
  setFlagsFromString("--optimize-for-size");
}
