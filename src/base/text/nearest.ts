import { distance } from "fastest-levenshtein";

/** Returns the name that was probably meant; undefined when none is close. */
export function nearest(
  word: string,
  names: readonly string[],
  maxEdits = Math.ceil(word.length / 3),
): string | undefined {
  const completions = names.filter((name) => word.length >= 2 && name.startsWith(word));
  if (completions.length === 1) return completions[0];
  const [best] = names
    .map((name) => ({ name, edits: editsBetween(word.toLowerCase(), name) }))
    .sort((one, other) => one.edits - other.edits);
  return best !== undefined && best.edits <= maxEdits ? best.name : undefined;
}

/** Swapped letters are the most common typo, so they count as no distance. */
function editsBetween(word: string, name: string): number {
  return sorted(word) === sorted(name) ? 0 : distance(word, name);
}

const sorted = (text: string): string => Array.from(text).sort().join("");
