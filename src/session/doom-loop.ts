/** The longest cycle of calls that is looked for. */
const longestCycle = 4;
/** How often a cycle must have come round to count as a loop. */
const rounds = 3;

/** A call as far as loops are concerned: the same tool with the same input. */
export function fingerprint(tool: string, input: unknown): string {
  return `${tool} ${JSON.stringify(input)}`;
}

/** Whether the newest of a turn's calls closes the third round of a cycle of one to four calls. */
export function isDoomLoop(fingerprints: readonly string[]): boolean {
  for (let length = 1; length <= longestCycle; length++) {
    if (endsInCycle(fingerprints, length)) return true;
  }
  return false;
}

function endsInCycle(fingerprints: readonly string[], length: number): boolean {
  const start = fingerprints.length - length * rounds;
  if (start < 0) return false;
  for (let index = start; index < fingerprints.length - length; index++) {
    if (fingerprints[index] !== fingerprints[index + length]) return false;
  }
  return true;
}
