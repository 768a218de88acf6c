import type { FileChange } from "../message/part.ts";
import { type FileStep, fileSteps, mergeMetadata } from "../conversation/checkpoints.ts";

/** Merges changes per file, from the first state to the last, but not over edits of others between them. */
export function netChanges(changes: readonly FileChange[]): FileChange[] {
  const files = Map.groupBy(fileSteps(changes), ({ path }) => path);
  return [...files.values()].flatMap(splitAtEdits).flatMap((steps): FileChange[] => {
    const [first] = steps;
    if (first === undefined) return [];
    const { path, before } = first;
    const after = steps.at(-1)?.after;
    const metadata = mergeMetadata(steps);
    const isSame = before === after && before !== undefined && metadata.wasLink === metadata.isLink;
    if (isSame && metadata.newMode === undefined) return [];
    const operation = before === null ? "add" : after === null ? "delete" : "update";
    const additions = steps.reduce((sum, { counts }) => sum + (counts?.additions ?? 0), 0);
    const deletions = steps.reduce((sum, { counts }) => sum + (counts?.deletions ?? 0), 0);
    return [{ path, operation, before, after, additions, deletions, ...metadata }];
  });
}

/** Splits the steps of a file where one does not begin with the content that the step before it left. */
function splitAtEdits(steps: readonly FileStep[]): FileStep[][] {
  const chains: FileStep[][] = [];
  for (const step of steps) {
    const chain = chains.at(-1);
    const left = chain?.at(-1)?.after;
    if (chain !== undefined && left !== undefined && left === step.before) chain.push(step);
    else chains.push([step]);
  }
  return chains;
}
