import { distance } from "fastest-levenshtein";
import { beginningOf } from "../../base/text/excerpt.ts";
import { collapsed, normalizeNewlines, plainPunctuation, splitLines } from "./match-source.ts";

/** Characters of the shown lines; about 60 tokens. */
const shownCharacters = 180;
const shownLines = 5;
const lineCharacters = 100;
/** Maximum length of a quoted line of the old text, in characters. */
const quotedCharacters = 80;
/** Maximum number of candidates compared by edit distance. */
const candidateLimit = 40;
/** Characters of a line that are compared by edit distance. */
const comparedCharacters = 200;
/** Maximum number of lines searched in the file. */
const searchedLines = 50_000;
/** Maximum number of lines of the old text that are searched. */
const wantedLines = 200;
/** A line that the old text repeats counts at this many positions at most. */
const repeatLimit = 3;
/** Minimum likeness of a shown line, from 0 to 1. */
const minLikeness = 0.5;

/**
 * Quotes the lines of the text that are most like the old text, with numbers, and describes the difference. Returns
 * undefined if no lines are similar. `name` is the parameter that contains the old text.
 */
export function describeNearest(text: string, oldString: string, name = "oldString"): string | undefined {
  const lines = normalizeNewlines(text).split("\n").slice(0, searchedLines);
  const wanted = splitLines(normalizeNewlines(oldString)).slice(0, wantedLines);
  const start = findNearestStart(lines, wanted);
  if (start === undefined) return undefined;
  const differing = wanted.findIndex((line, index) => lines[start + index] !== line);
  const at = Math.max(0, differing);
  const found = lines.slice(start, start + wanted.length);
  const shown = numberLines(lines, start + at, Math.max(1, wanted.length - at));
  return `The nearest lines are:\n${shown}\n${describeDifference(found, wanted, { line: start + at + 1, at, name })}`;
}

/** Returns the index of the line at which the old text probably begins. */
function findNearestStart(lines: readonly string[], wanted: readonly string[]): number | undefined {
  const keys = wanted.map(toKey);
  const starts = findByEqualLines(lines, keys);
  const best = pickBest(starts, lines, keys) ?? findBySimilarLine(lines, wanted);
  return best === undefined ? undefined : Math.max(0, Math.min(best, lines.length - 1));
}

/**
 * Returns the possible starts of the old text, each with its number of equal lines. Ignores blanks, case and quotes. A
 * start is negative if the text has only later lines of the old text.
 */
function findByEqualLines(lines: readonly string[], keys: readonly string[]): Map<number, number> {
  const positions = new Map<string, number[]>();
  for (const [index, key] of keys.entries()) {
    if (!/[\p{L}\p{N}]/u.test(key)) continue;
    const known = positions.get(key) ?? [];
    if (known.length < repeatLimit) known.push(index);
    positions.set(key, known);
  }
  const counts = new Map<number, number>();
  for (const [at, line] of lines.entries())
    for (const index of positions.get(toKey(line)) ?? [])
      counts.set(at - index, (counts.get(at - index) ?? 0) + 1);
  return counts;
}

function pickBest(
  starts: ReadonlyMap<number, number>,
  lines: readonly string[],
  keys: readonly string[],
): number | undefined {
  let most = 0;
  for (const count of starts.values()) most = Math.max(most, count);
  const best = [...starts].filter(([, count]) => count === most).slice(0, candidateLimit);
  const rated = best.map(([start]) => ({ start, likeness: rate(start, lines, keys) }));
  return rated.sort((one, other) => other.likeness - one.likeness || one.start - other.start)[0]?.start;
}

function rate(start: number, lines: readonly string[], keys: readonly string[]): number {
  return keys
    .slice(0, candidateLimit)
    .reduce((sum, key, index) => sum + likeness(key, toKey(lines[start + index] ?? "")), 0);
}

/** Finds the line that is most like the longest line of the old text. */
function findBySimilarLine(lines: readonly string[], wanted: readonly string[]): number | undefined {
  const longest = wanted.reduce((one, other) => (other.trim().length > one.trim().length ? other : one), "");
  const index = wanted.indexOf(longest);
  const key = toKey(longest);
  const words = new Set(splitWords(key));
  if (words.size === 0) return undefined;
  const rated = lines.map((line, at) => {
    const own = splitWords(toKey(line));
    const shared = new Set(own.filter((word) => words.has(word))).size;
    return { at, line, overlap: shared / Math.max(words.size, own.length) };
  });
  const candidates = rated
    .filter(({ overlap }) => overlap > 0)
    .sort((one, other) => other.overlap - one.overlap || one.at - other.at)
    .slice(0, candidateLimit)
    .map(({ at, line }) => ({ at, likeness: likeness(key, toKey(line)) }))
    .filter((one) => one.likeness >= minLikeness)
    .sort((one, other) => other.likeness - one.likeness || one.at - other.at);
  const [best] = candidates;
  return best === undefined ? undefined : best.at - index;
}

const splitWords = (line: string): string[] => line.match(/[\p{L}\p{N}_]+/gu) ?? [];

function likeness(one: string, other: string): number {
  const [left, right] = [one.slice(0, comparedCharacters), other.slice(0, comparedCharacters)];
  const length = Math.max(left.length, right.length);
  return length === 0 ? 1 : 1 - distance(left, right) / length;
}

function numberLines(lines: readonly string[], first: number, count: number): string {
  const shown: string[] = [];
  let left = shownCharacters;
  for (const [index, line] of lines.slice(first, first + Math.min(count, shownLines)).entries()) {
    const numbered = `${first + index + 1}: ${shorten(line, lineCharacters)}`;
    left -= numbered.length;
    if (left < 0 && shown.length > 0) break;
    shown.push(numbered);
  }
  return shown.join("\n");
}

/** Differences that a normalization removes, smallest first. */
const differences: readonly (readonly [what: string, normalize: (line: string) => string])[] = [
  ["blanks at the ends of lines", (line) => line.trimEnd()],
  ["tabs and spaces", (line) => line.trimEnd().replaceAll(/[ \t]+/g, " ")],
  ["indentation", (line) => line.trim()],
  ["blanks", collapsed],
  ["quotes or dashes", (line) => collapsed(plainPunctuation(line))],
  ["HTML escapes such as &lt;", (line) => collapsed(plainPunctuation(unescapeHtml(line)))],
  ["upper and lower case", (line) => collapsed(plainPunctuation(line)).toLowerCase()],
];

function describeDifference(
  found: readonly string[],
  wanted: readonly string[],
  { line, at, name }: { line: number; at: number; name: string },
): string {
  const only = differences.find(([, normalize]) => isSame(found, wanted, normalize))?.[0];
  if (only !== undefined) return `The only difference to ${name} is in ${only}: copy the lines as they are.`;
  if (wanted.length === 1) return "Copy the line exactly, without the number.";
  const quoted = JSON.stringify(shorten(wanted[at] ?? "", quotedCharacters));
  return `The first difference is in line ${line}, where ${name} has ${quoted}.`;
}

function isSame(
  found: readonly string[],
  wanted: readonly string[],
  normalize: (line: string) => string,
): boolean {
  return wanted.every((line, index) => normalize(line) === normalize(found[index] ?? ""));
}

const shorten = (line: string, length: number): string =>
  line.length > length ? `${beginningOf(line, length)}…` : line;

const toKey = (line: string): string => collapsed(plainPunctuation(line)).toLowerCase();

const entities: ReadonlyMap<string, string> = new Map([
  ["&lt;", "<"],
  ["&gt;", ">"],
  ["&quot;", '"'],
  ["&#39;", "'"],
  ["&apos;", "'"],
  ["&amp;", "&"],
]);

function unescapeHtml(line: string): string {
  return line.replaceAll(/&(?:lt|gt|quot|apos|amp|#39);/g, (entity) => entities.get(entity) ?? entity);
}
