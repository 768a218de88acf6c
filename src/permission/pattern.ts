import { toSlashes } from "../base/files/paths.ts";
import { collapseStars, matchesWildcards } from "../base/text/wildcards.ts";

/** Maximum number of steps to compare two patterns; above, they count as overlapping. */
const overlapLimit = 4_000_000;

/**
 * Whether a rule's pattern matches the whole text.
 * - As {@link matchesWildcards}.
 * - A pattern that ends in ` *` also matches the text without arguments.
 */
export function matches(pattern: string, text: string): boolean {
  return (
    matchesWildcards(pattern, text) ||
    (pattern.endsWith(" *") && matchesWildcards(pattern.slice(0, -2), text))
  );
}

/** Whether the pattern matches every text. */
export function isCatchAll(pattern: string): boolean {
  return /^\*+$/.test(pattern);
}

/** Whether `pattern` matches every text that the pattern `texts` matches. May return false negatives. */
export function covers(pattern: string, texts: string): boolean {
  return isCatchAll(pattern) || (!pattern.includes("?") && matches(pattern, texts));
}

/** Whether some text matches both a rule's pattern and the pattern `texts`. True if they are too long to compare. */
export function overlaps(pattern: string, texts: string): boolean {
  const [a, b] = [collapseStars(pattern), collapseStars(texts)];
  if (a.length * b.length > overlapLimit) return true;
  return intersects(a, b) || (a.endsWith(" *") && intersects(a.slice(0, -2), b));
}

/** Replaces a leading `~` or `$HOME` of a pattern by the home folder, with `/` as separator. */
export function expandHome(pattern: string, home: string, separator?: string): string {
  return pattern.replace(/^(?:~|\$HOME)(?=\/|$)/, () => toSlashes(home, separator));
}

/** `reach[j]`: some text matches both the first i characters of `a` and the first j of `b`. */
function intersects(a: string, b: string): boolean {
  let reach = new Uint8Array(b.length + 1);
  reach[0] = 1;
  for (let j = 1; j <= b.length && b[j - 1] === "*"; j++) reach[j] = 1;
  for (let i = 1; i <= a.length; i++) {
    const next = new Uint8Array(b.length + 1);
    const left = a[i - 1];
    next[0] = left === "*" ? (reach[0] ?? 0) : 0;
    for (let j = 1; j <= b.length; j++) {
      const right = b[j - 1];
      const both = left === right || left === "?" || right === "?";
      next[j] =
        left === "*" || right === "*" ? (reach[j] ?? 0) | (next[j - 1] ?? 0) : both ? (reach[j - 1] ?? 0) : 0;
    }
    reach = next;
  }
  return reach[b.length] === 1;
}
