import { findBlocks, findByContext } from "./match-blocks.ts";
import { commonIndent } from "./match-indent.ts";
import { createExactPlace, createLinesPlace, trimBlankLines, createWordsPlace } from "./match-place.ts";
import { findRuns } from "./match-runs.ts";
import { collapsed, splitLines } from "./match-source.ts";
import type { Find, MatchPlace, Source, Span, EditQuery } from "./match-source.ts";

/** How the old text was matched, from strict to tolerant. */
export type Strategy =
  | "exact"
  | "indentation"
  | "trimmed lines"
  | "trimmed boundary"
  | "whitespace"
  | "escapes"
  | "block anchors"
  | "context";

/** Places reported for an ambiguous match. */
export const placeLimit = 100;

/** Places that one edit may replace. */
export const replaceLimit = 200_000;

const wordLimit = 5_000;
/** Lines or words compared before the search gives up; repeated text may have too many candidates. */
const comparisonLimit = 10_000_000;
const escapes = /\\[nrt"'`\\$]/g;

/** In order of trial. */
export const strategies: readonly { strategy: Strategy; find: Find }[] = [
  { strategy: "exact", find: findExact },
  { strategy: "indentation", find: skipBlankNeedle(findIndented) },
  { strategy: "trimmed lines", find: skipBlankNeedle(findTrimmedLines) },
  { strategy: "trimmed boundary", find: skipBlankNeedle(findTrimmedBoundary) },
  { strategy: "whitespace", find: skipBlankNeedle(findWhitespace) },
  { strategy: "escapes", find: skipBlankNeedle(findEscaped) },
  { strategy: "block anchors", find: skipBlankNeedle(findBlocks) },
  { strategy: "context", find: skipBlankNeedle(findByContext) },
];

function findExact(source: Source, wanted: EditQuery): MatchPlace[] {
  // Overlapping places count as several, because the intended one is unknown.
  return findOccurrences(source.text, wanted.needle, wanted.all).map((start) =>
    createExactPlace(source, wanted, start),
  );
}

/** Disables a tolerant strategy for blank text, which would match anywhere. */
function skipBlankNeedle(find: Find): Find {
  return (source, wanted) => (wanted.needle.trim() === "" ? [] : find(source, wanted));
}

/** Finds the block at another depth with the same shape; trailing blanks are ignored. */
function findIndented(source: Source, wanted: EditQuery): MatchPlace[] {
  const needle = splitLines(wanted.needle).map((line) => line.trimEnd());
  const shift = commonIndent(needle);
  const bare = needle.map((line) => line.slice(shift.length));
  const trimmed = needle.map((line) => line.trim());
  return findLinePlaces(source, wanted, trimmed, source.trimmed, (first) => hasShape(source, first, bare));
}

function hasShape(source: Source, first: number, bare: readonly string[]): boolean {
  const lines = source.lines.slice(first, first + bare.length).map((line) => line.trimEnd());
  const shift = commonIndent(lines);
  return lines.every((line, index) => line.slice(shift.length) === bare[index]);
}

function findTrimmedLines(source: Source, wanted: EditQuery): MatchPlace[] {
  const needle = splitLines(wanted.needle).map((line) => line.trim());
  return findLinePlaces(source, wanted, needle, source.trimmed);
}

/** Finds the needle without surrounding blanks or blank lines. */
function findTrimmedBoundary(source: Source, wanted: EditQuery): MatchPlace[] {
  const core = wanted.needle.trim();
  if (core === wanted.needle) return [];
  const inLines = findCoreLines(source, wanted);
  if (inLines.length > 0) return inLines;
  return findOccurrences(source.text, core, wanted.all)
    .map((start) => createWordsPlace(source, wanted, { start, end: start + core.length }))
    .filter((span) => isWhole(source.text, span));
}

function findCoreLines(source: Source, wanted: EditQuery): MatchPlace[] {
  const core = trimBlankLines(wanted);
  const indented = findIndented(source, core);
  return indented.length > 0 ? indented : findTrimmedLines(source, core);
}

/** Finds the needle with runs of blanks and newlines treated as one blank. */
function findWhitespace(source: Source, wanted: EditQuery): MatchPlace[] {
  const core = trimBlankLines(wanted);
  for (const lines of [wanted, core]) {
    const inLines = findLinePlaces(source, lines, splitLines(lines.needle).map(collapsed), source.collapsed);
    if (inLines.length > 0) return inLines;
  }
  return findWords(source, wanted);
}

/** Finds whole lines equal to the needle's, up to the limit; none overlap if all are replaced. */
function findLinePlaces(
  source: Source,
  wanted: EditQuery,
  needle: readonly string[],
  lines: readonly string[],
  fits: (first: number) => boolean = () => true,
): MatchPlace[] {
  const places: MatchPlace[] = [];
  let free = 0;
  let compared = 0;
  for (const first of findRuns(needle, lines)) {
    if (first < free) continue;
    compared += needle.length;
    if (compared > comparisonLimit) break;
    if (!fits(first)) continue;
    places.push(createLinesPlace(source, wanted, first, needle.length));
    if (places.length > (wanted.all ? replaceLimit : placeLimit)) break;
    if (wanted.all) free = first + needle.length;
  }
  return places;
}

function findWords(source: Source, wanted: EditQuery): MatchPlace[] {
  const { text } = source;
  const words = wanted.needle.trim().split(/\s+/);
  if (words.length < 2 || words.length > wordLimit || isTooFrequent(text, words)) return [];
  const places: MatchPlace[] = [];
  for (const span of findWordSpans(text, words)) {
    if (isWhole(text, span)) places.push(createWordsPlace(source, wanted, span));
    if (places.length > (wanted.all ? replaceLimit : placeLimit)) break;
  }
  return places;
}

/** Yields where the words follow each other with any blanks between them. No two spans overlap. */
function* findWordSpans(text: string, words: readonly string[]): Generator<{ start: number; end: number }> {
  const [first = ""] = words;
  let start = text.indexOf(first);
  while (start !== -1) {
    const end = endOfWords(text, start, words);
    if (end !== undefined) yield { start, end };
    start = text.indexOf(first, end ?? start + 1);
  }
}

function endOfWords(text: string, start: number, words: readonly string[]): number | undefined {
  const blanks = /\s+/y;
  let at = start;
  for (const [index, word] of words.entries()) {
    if (index > 0) {
      blanks.lastIndex = at;
      if (!blanks.test(text)) return undefined;
      at = blanks.lastIndex;
    }
    if (!text.startsWith(word, at)) return undefined;
    at += word.length;
  }
  return at;
}

/** Whether the first word occurs so often that checking every place would take seconds. */
function isTooFrequent(text: string, [first = "", ...others]: readonly string[]): boolean {
  let left = comparisonLimit;
  for (let at = text.indexOf(first); at !== -1 && left >= 0; at = text.indexOf(first, at + first.length))
    left -= others.length;
  return left < 0;
}

/** Finds the needle with escapes such as `\n` or `\"` replaced by the characters themselves. */
function findEscaped({ text }: Source, { needle, replacement, all }: EditQuery): MatchPlace[] {
  const kinds = new Set(needle.match(escapes));
  if (kinds.size === 0) return [];
  const plain = unescape(needle, kinds);
  if (plain.trim() === "") return [];
  // Only the kinds escaped in the old text are assumed to be mistakes in the new one.
  const unescaped = unescape(replacement, kinds);
  return findOccurrences(text, plain, all).map((start) => ({
    start,
    end: start + plain.length,
    replacement: unescaped,
  }));
}

/** Whether a match neither begins nor ends within a word. */
function isWhole(text: string, { start, end }: Span): boolean {
  return !isWithinWord(text, start) && !isWithinWord(text, end);
}

function isWithinWord(text: string, at: number): boolean {
  return (
    at > 0 &&
    at < text.length &&
    wordCharacter.test(text.charAt(at - 1)) &&
    wordCharacter.test(text.charAt(at))
  );
}

const wordCharacter = /[\p{L}\p{N}_$]/u;

function unescape(text: string, kinds: ReadonlySet<string>): string {
  return text.replace(escapes, (escape) =>
    kinds.has(escape) ? (characters.get(escape) ?? escape.slice(1)) : escape,
  );
}

const characters: ReadonlyMap<string, string> = new Map([
  ["\\n", "\n"],
  ["\\r", "\r"],
  ["\\t", "\t"],
]);

function findOccurrences(text: string, needle: string, apart: boolean): number[] {
  const found: number[] = [];
  const step = apart ? needle.length : 1;
  for (let at = text.indexOf(needle); at !== -1; at = text.indexOf(needle, at + step)) {
    found.push(at);
    if (found.length > (apart ? replaceLimit : placeLimit)) break;
  }
  return found;
}
