/**
 * Whether a pattern matches the whole text: `*` matches any characters, including line breaks; `?` matches one. Takes at
 * most pattern × text steps: each `*` starts empty and grows until the next piece matches.
 */
export function matchesWildcards(rawPattern: string, text: string): boolean {
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

/** Replaces adjacent stars by one. */
export function collapseStars(pattern: string): string {
  return pattern.replace(/\*{2,}/g, "*");
}
