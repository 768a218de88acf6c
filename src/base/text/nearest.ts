import { distance } from "fastest-levenshtein";

/** Of the names the one that was probably meant; undefined where none is near. */
export function nearest(word: string, names: readonly string[]): string | undefined {
  const begun = names.filter((name) => word.length >= 2 && name.startsWith(word));
  if (begun.length === 1) return begun[0];
  const [best] = names
    .map((name) => ({ name, steps: stepsBetween(word.toLowerCase(), name) }))
    .sort((one, other) => one.steps - other.steps);
  return best !== undefined && best.steps <= Math.ceil(word.length / 3) ? best.name : undefined;
}

/** Letters in the wrong order are the commonest slip. */
function stepsBetween(word: string, name: string): number {
  return sorted(word) === sorted(name) ? 0 : distance(word, name);
}

const sorted = (text: string): string => Array.from(text).sort().join("");
