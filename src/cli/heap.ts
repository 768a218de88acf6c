/**
 * Makes V8 collect garbage instead of growing the heap. V8 reads both flags whenever the heap would grow, so they work
 * at run time: editors write the command line. Figures are in docs/development/performance.md.
 */
export async function limitHeapGrowth(): Promise<void> {
  const { setFlagsFromString } = await import("node:v8");
  setFlagsFromString("--semi-space-growth-factor=1");
  setFlagsFromString("--optimize-for-size");
}
