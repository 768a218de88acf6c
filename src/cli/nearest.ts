import { distance } from "fastest-levenshtein";

/** Of the names the one that was probably meant; undefined where none is near. */
export function nearest(word: string, names: readonly string[]): string | undefined {
  const begun = names.filter((name) => word.length >= 2 && name.startsWith(word));
  if (begun.length === 1) return begun[0];
  const [best] = names
    .map((name) => ({ name, steps: distance(word.toLowerCase(), name) }))
    .sort((one, other) => one.steps - other.steps);
  return best !== undefined && best.steps <= Math.ceil(word.length / 3) ? best.name : undefined;
}
