import { createEditQuery } from "./match-place.ts";
import { splitLines, Source, normalizeNewlines } from "./match-source.ts";
import type { MatchPlace, Span, EditQuery } from "./match-source.ts";
import { placeLimit, replaceLimit, strategies } from "./match-strategies.ts";
import type { Strategy } from "./match-strategies.ts";

export interface Edit {
  readonly oldString: string;
  readonly newString: string;
  readonly replaceAll?: boolean;
}

export type EditOutcome =
  /** `indented`: the old text matched exactly, but the new text's missing indentation was added. */
  | { outcome: "replaced"; text: string; strategy: Strategy; spans: readonly Span[]; indented?: boolean }
  | { outcome: "missing" }
  /** `lines`: where the old text begins, from 1, at most {@link placeLimit}; `more`: there are others. */
  | { outcome: "ambiguous"; strategy: Strategy; lines: readonly number[]; more: boolean }
  /** `replaceAll` found more than {@link replaceLimit} places. */
  | { outcome: "tooMany" }
  /** The only match covers far more than the old text. */
  | { outcome: "oversized"; line: number };

/**
 * Replaces the old text by the new one.
 *
 * - The strictest strategy that finds a match decides; a tolerant one never overrules a literal match.
 * - Line endings are compared as `\n` and written as in the surrounding text.
 * - Nothing outside the returned spans changes.
 */
export function applyEdit(text: string, edit: Edit): EditOutcome {
  if (edit.oldString === "") return { outcome: "missing" };
  const source = new Source(text);
  const all = edit.replaceAll === true;
  const wanted = createEditQuery(normalizeNewlines(edit.oldString), normalizeNewlines(edit.newString), all);
  let oversized: MatchPlace | undefined;
  for (const { strategy, find } of strategies) {
    const found = find(source, wanted);
    const fitting = found.filter((place) => !isOversized(source, place, wanted.needle));
    if (fitting.length > 0) return conclude(source, wanted, strategy, fitting);
    oversized ??= found[0];
  }
  if (oversized === undefined) return { outcome: "missing" };
  return { outcome: "oversized", line: source.lineAt(oversized.start) + 1 };
}

function conclude(
  source: Source,
  { all }: EditQuery,
  strategy: Strategy,
  places: readonly MatchPlace[],
): EditOutcome {
  const [first] = places;
  const several = places.length > 1 && (!all || places.some(({ similar }) => similar));
  if (first === undefined) return { outcome: "missing" };
  if (several) return ambiguous(source, strategy, places);
  if (places.length > replaceLimit) return { outcome: "tooMany" };
  const apart = removeOverlaps(places);
  const spans = apart.map((place) => source.toRaw(place));
  const indented = apart.some((place) => place.indented);
  return { outcome: "replaced", text: source.replace(apart), strategy, spans, ...(indented && { indented }) };
}

function ambiguous(source: Source, strategy: Strategy, places: readonly MatchPlace[]): EditOutcome {
  const shown = places.slice(0, placeLimit);
  const lines = [...new Set(shown.map(({ start }) => source.lineAt(start) + 1))];
  return { outcome: "ambiguous", strategy, lines, more: places.length > placeLimit };
}

/** Whether a tolerant match is so long that replacing it would remove unrelated text. */
function isOversized(source: Source, { start, end }: Span, needle: string): boolean {
  const lines = source.lineAt(Math.max(start, end - 1)) - source.lineAt(start) + 1;
  const wanted = splitLines(needle).length;
  if (lines >= Math.max(wanted + 3, wanted * 2)) return true;
  return end - start > Math.max(needle.length + 500, needle.length * 4);
}

function removeOverlaps(places: readonly MatchPlace[]): MatchPlace[] {
  const apart: MatchPlace[] = [];
  for (const place of places) {
    if (place.start >= (apart.at(-1)?.end ?? 0)) apart.push(place);
  }
  return apart;
}
