/** Maximum number of steps to compare two patterns; above, they count as overlapping. */
const overlapLimit = 4_000_000;

/**
 * Whether a rule's pattern matches the whole text.
 * - `*` matches any characters, including line breaks; `?` matches one.
 * - A pattern that ends in ` *` also matches the text without arguments.
 * - Takes at most pattern × text steps: backtracks only to the last `*`.
 */
export function matches(pattern: string, text: string): boolean {
  return (
    matchesPattern(pattern, text) || (pattern.endsWith(" *") && matchesPattern(pattern.slice(0, -2), text))
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

/** Replaces a leading `~` or `$HOME` of a pattern by the home folder. */
export function expandHome(pattern: string, home: string): string {
  return pattern.replace(/^(?:~|\$HOME)(?=\/|$)/, () => home);
}

/** Greedy: each `*` starts empty and grows until the next piece matches. */
function matchesPattern(rawPattern: string, text: string): boolean {
  const pattern = collapseStars(rawPattern);
  const pieces = pattern.split("*");
  const first = pieces[0] ?? "";
  const last = pieces.at(-1) ?? "";
  if (pieces.length === 1) return text.length === first.length && matchesAt(first, text, 0);
  if (text.length < first.length + last.length) return false;
  if (!matchesAt(first, text, 0) || !matchesAt(last, text, text.length - last.length)) return false;
  return matchesInOrder(pieces.slice(1, -1), text, first.length, text.length - last.length);
}

function matchesInOrder(pieces: readonly string[], text: string, from: number, to: number): boolean {
  let position = from;
  for (const piece of pieces) {
    const found = findPiece(piece, text, position, to);
    if (found === -1) return false;
    position = found + piece.length;
  }
  return true;
}

function findPiece(piece: string, text: string, from: number, to: number): number {
  if (!piece.includes("?")) {
    const found = text.indexOf(piece, from);
    return found !== -1 && found + piece.length <= to ? found : -1;
  }
  for (let start = from; start + piece.length <= to; start++) if (matchesAt(piece, text, start)) return start;
  return -1;
}

function matchesAt(piece: string, text: string, start: number): boolean {
  for (let index = 0; index < piece.length; index++) {
    if (piece[index] !== "?" && piece[index] !== text[start + index]) return false;
  }
  return true;
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

function collapseStars(pattern: string): string {
  return pattern.replace(/\*{2,}/g, "*");
}
