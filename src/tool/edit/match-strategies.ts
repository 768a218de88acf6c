import { findBlocks, findByContext } from "./match-blocks.ts";
import { commonIndent } from "./match-indent.ts";
import { createExactPlace, createLinesPlace, trimBlankLines, createWordsPlace } from "./match-place.ts";
import { findRuns } from "./match-runs.ts";
import { collapsed, splitLines } from "./match-source.ts";
import type { Find, MatchPlace, Source, Span, EditQuery } from "./match-source.ts";

/** How the old text was recognised, from the strictest to the most tolerant. */
export type Strategy =
  | "exact"
  | "indentation"
  | "trimmed lines"
  | "trimmed boundary"
  | "whitespace"
  | "escapes"
  | "block anchors"
  | "context";

/** Ambiguity is reported with this many places at most. */
export const placeLimit = 100;

/** More places are not replaced at once. */
export const replaceLimit = 200_000;

const wordLimit = 5_000;
/** Lines or words of places that are looked at, before it is given up: where text repeats, they may have no end. */
const comparisonLimit = 10_000_000;
const escapes = /\\[nrt"'`\\$]/g;

/** In the order in which they are tried. */
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
  // Places that overlap count as several: which of them was meant cannot be known.
  return findOccurrences(source.text, wanted.needle, wanted.all).map((start) =>
    createExactPlace(source, wanted, start),
  );
}

/** Blank text has nothing that tolerance could hold on to. */
function skipBlankNeedle(find: Find): Find {
  return (source, wanted) => (wanted.needle.trim() === "" ? [] : find(source, wanted));
}

/** The block stands deeper or less deep, with the same shape; blanks at line ends do not count. */
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

/** The needle has blank lines or blanks around it that the text has not. */
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

/** Runs of blanks and newlines count as one blank. */
function findWhitespace(source: Source, wanted: EditQuery): MatchPlace[] {
  const core = trimBlankLines(wanted);
  for (const lines of [wanted, core]) {
    const inLines = findLinePlaces(source, lines, splitLines(lines.needle).map(collapsed), source.collapsed);
    if (inLines.length > 0) return inLines;
  }
  return findWords(source, wanted);
}

/** Whole lines that are the needle's, as many as are needed to know, none that overlap where all are replaced. */
function findLinePlaces(
  source: Source,
  wanted: EditQuery,
  needle: readonly string[],
  lines: readonly string[],
  fits: (first: number) => boolean = () => true,
): MatchPlace[] {
  const places: MatchPlace[] = [];
  let free = 0;
  let lookedAt = 0;
  for (const first of findRuns(needle, lines)) {
    if (first < free) continue;
    lookedAt += needle.length;
    if (lookedAt > comparisonLimit) break;
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
  for (const match of text.matchAll(new RegExp(words.map(escapeRegExp).join("\\s+"), "g"))) {
    const span = { start: match.index, end: match.index + match[0].length };
    if (isWhole(text, span)) places.push(createWordsPlace(source, wanted, span));
    if (places.length > (wanted.all ? replaceLimit : placeLimit)) break;
  }
  return places;
}

/** Whether the words may begin in so many places that looking at all of them would take seconds. */
function isTooFrequent(text: string, [first = "", ...others]: readonly string[]): boolean {
  let left = comparisonLimit;
  for (let at = text.indexOf(first); at !== -1 && left >= 0; at = text.indexOf(first, at + first.length))
    left -= others.length;
  return left < 0;
}

/** The needle has `\n`, `\"` and the like where the text has the character itself. */
function findEscaped({ text }: Source, { needle, replacement, all }: EditQuery): MatchPlace[] {
  const kinds = new Set(needle.match(escapes));
  if (kinds.size === 0) return [];
  const plain = unescape(needle, kinds);
  if (plain.trim() === "") return [];
  // Only what was escaped in the old text was escaped by mistake in the new one.
  const meant = unescape(replacement, kinds);
  return findOccurrences(text, plain, all).map((start) => ({
    start,
    end: start + plain.length,
    replacement: meant,
  }));
}

/** A tolerant match must not begin or end in the middle of a word. */
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

/** The text as a regular expression that matches just it. */
function escapeRegExp(text: string): string {
  return text.replaceAll(/[\\^$.*+?()[\]{}|/-]/g, "\\$&");
}

function findOccurrences(text: string, needle: string, apart: boolean): number[] {
  const found: number[] = [];
  const step = apart ? needle.length : 1;
  for (let at = text.indexOf(needle); at !== -1; at = text.indexOf(needle, at + step)) {
    found.push(at);
    if (found.length > (apart ? replaceLimit : placeLimit)) break;
  }
  return found;
}
