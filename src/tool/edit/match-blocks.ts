import { distance } from "fastest-levenshtein";
import { createLinesPlace } from "./match-place.ts";
import { splitLines } from "./match-source.ts";
import type { MatchPlace, Source, EditQuery } from "./match-source.ts";

const sizeTolerance = 0.25;
const minLikeness = 0.65;
/** Overlapping blocks whose likeness differs by less than this are ambiguous. */
const clearMargin = 0.05;
/** Anchors with more candidate blocks than this are too common to be useful. */
const candidateLimit = 500;
/** Characters; longer middle parts are not compared, because the work grows with the square. */
const comparedLength = 20_000;
/** Character pairs compared over all blocks, which takes about a second. */
const comparedPairs = 4_000_000_000;

/** Finds blocks with the same first and last line, a similar size and a similar middle. */
export function findBlocks(source: Source, wanted: EditQuery): MatchPlace[] {
  const needle = splitLines(wanted.needle).map((line) => line.trim());
  if (!hasAnchors(needle)) return [];
  const slack = Math.max(1, Math.floor(needle.length * sizeTolerance));
  const blocks = findAnchoredBlocks(source, needle, slack);
  if (blocks.length * middleLength(needle) ** 2 > comparedPairs) return [];
  const alike = blocks
    .map((block) => ({
      ...block,
      likeness: computeLikeness(needle, source.trimmed.slice(block.first, block.first + block.count)),
    }))
    .filter((block) => block.likeness >= minLikeness);
  return pickClearWinner(alike).map(({ first, count }) => ({
    ...createLinesPlace(source, wanted, first, count),
    similar: true,
  }));
}

/** Finds blocks with the same first and last line and at least half of the lines between. */
export function findByContext(source: Source, wanted: EditQuery): MatchPlace[] {
  const needle = splitLines(wanted.needle).map((line) => line.trim());
  if (!hasAnchors(needle)) return [];
  return findAnchoredBlocks(source, needle, 0)
    .filter(({ first }) => sharesHalf(needle, source.trimmed, first))
    .map(({ first, count }) => ({ ...createLinesPlace(source, wanted, first, count), similar: true }));
}

interface Block {
  readonly first: number;
  readonly count: number;
}

/** Whether the first and last line can be anchors; lines such as `}` are too common. */
function hasAnchors(needle: readonly string[]): boolean {
  return needle.length >= 3 && /[\p{L}\p{N}]/u.test(needle[0] ?? "") && needle.at(-1) !== "";
}

function findAnchoredBlocks({ trimmed }: Source, needle: readonly string[], slack: number): Block[] {
  const [opening = "", closing = ""] = [needle[0], needle.at(-1)];
  const shortest = Math.max(3, needle.length - slack);
  const closings = trimmed.flatMap((line, index) => (line === closing ? [index] : []));
  const blocks: Block[] = [];
  let next = 0;
  for (let first = trimmed.indexOf(opening); first !== -1; first = trimmed.indexOf(opening, first + 1)) {
    while ((closings[next] ?? Number.POSITIVE_INFINITY) < first + shortest - 1) next++;
    for (let at = next; (closings[at] ?? Number.POSITIVE_INFINITY) < first + needle.length + slack; at++) {
      blocks.push({ first, count: (closings[at] ?? first) - first + 1 });
      if (blocks.length > candidateLimit) return [];
    }
    if (next === closings.length) break;
  }
  return blocks;
}

function middleLength(needle: readonly string[]): number {
  const length = needle.slice(1, -1).reduce((sum, line) => sum + line.length + 1, 0);
  return Math.min(length, comparedLength);
}

/** Likeness of the lines between the first and the last, from 0 to 1. */
function computeLikeness(needle: readonly string[], lines: readonly string[]): number {
  const wanted = needle.slice(1, -1).join("\n");
  const found = lines.slice(1, -1).join("\n");
  const longer = Math.max(wanted.length, found.length);
  if (longer === 0) return 1;
  const tooDifferent = Math.abs(wanted.length - found.length) > longer * (1 - minLikeness);
  if (tooDifferent || longer > comparedLength) return 0;
  return 1 - distance(wanted, found) / longer;
}

/** Removes blocks that overlap the best one and are clearly worse. The other blocks remain candidates. */
function pickClearWinner<T extends Block & { likeness: number }>(blocks: readonly T[]): readonly T[] {
  const [best, ...rest] = [...blocks].sort((one, two) => two.likeness - one.likeness);
  if (best === undefined) return [];
  const isRival = (block: T) => !overlaps(best, block) || best.likeness - block.likeness < clearMargin;
  return [best, ...rest.filter(isRival)].sort((one, two) => one.first - two.first);
}

function overlaps(one: Block, two: Block): boolean {
  return one.first < two.first + two.count && two.first < one.first + one.count;
}

function sharesHalf(needle: readonly string[], trimmed: readonly string[], first: number): boolean {
  const middle = needle.slice(1, -1);
  const equal = middle.filter((line, index) => line !== "" && trimmed[first + 1 + index] === line).length;
  const meaningful = middle.filter((line) => line !== "").length;
  return meaningful > 0 && equal * 2 >= meaningful;
}
