import { diffArrays } from "diff";

/** The old lines from `start` to `end` became the new lines from `newStart` to `newEnd`; ends are exclusive. */
export interface LineChange {
  readonly start: number;
  readonly end: number;
  readonly newStart: number;
  readonly newEnd: number;
}

/** Changes that are near each other, in order; its range includes unchanged lines around them. */
export interface Hunk extends LineChange {
  readonly changes: readonly LineChange[];
}

/** Texts that differ in more lines are compared as one change. Not a time limit: equal texts give equal results. */
const editLengthLimit = 2_000;
/** Unchanged lines around the changes of a hunk. */
const contextLines = 3;

/** Splits a text into lines with their ends; only the last one may have none. */
export function splitLines(text: string): string[] {
  return text.match(/[^\n]*\n|[^\n]+$/g) ?? [];
}

export function findLineChanges(old: readonly string[], fresh: readonly string[]): LineChange[] {
  const shorter = Math.min(old.length, fresh.length);
  let start = 0;
  while (start < shorter && old[start] === fresh[start]) start++;
  let same = 0;
  while (same < shorter - start && old.at(-1 - same) === fresh.at(-1 - same)) same++;
  const [end, newEnd] = [old.length - same, fresh.length - same];
  if (start === end && start === newEnd) return [];
  const whole = [{ start, end, newStart: start, newEnd }];
  if (start === end || start === newEnd) return whole;
  const options = { maxEditLength: editLengthLimit };
  const blocks = diffArrays(old.slice(start, end), fresh.slice(start, newEnd), options);
  return blocks === undefined ? whole : toChanges(blocks, start);
}

/** Groups the changes between two texts into hunks. */
export function findHunks(old: readonly string[], fresh: readonly string[]): Hunk[] {
  const groups: LineChange[][] = [];
  for (const change of findLineChanges(old, fresh)) {
    const group = groups.at(-1);
    const last = group?.at(-1);
    if (group !== undefined && last !== undefined && change.start - last.end <= 2 * contextLines)
      group.push(change);
    else groups.push([change]);
  }
  return groups.flatMap((changes) => {
    const [first, last] = [changes[0], changes.at(-1)];
    if (first === undefined || last === undefined) return [];
    const above = Math.min(contextLines, first.start);
    const below = Math.min(contextLines, old.length - last.end);
    return {
      start: first.start - above,
      end: last.end + below,
      newStart: first.newStart - above,
      newEnd: last.newEnd + below,
      changes,
    };
  });
}

/** Formats a hunk's lines with ` `, `-` or `+` before each, and git's note after a last line without an end. */
export function formatHunk(hunk: Hunk, old: readonly string[], fresh: readonly string[]): string[] {
  const lines: string[] = [];
  const add = (mark: string, text: readonly string[]) => {
    for (const line of text)
      lines.push(...(line.endsWith("\n") ? [mark + line.slice(0, -1)] : [mark + line, noLineEnd]));
  };
  let at = hunk.start;
  for (const { start, end, newStart, newEnd } of hunk.changes) {
    add(" ", old.slice(at, start));
    add("-", old.slice(start, end));
    add("+", fresh.slice(newStart, newEnd));
    at = end;
  }
  add(" ", old.slice(at, hunk.end));
  return lines;
}

const noLineEnd = "\\ No newline at end of file";

/** Returns the new text without these changes. */
export function revertLines(
  old: readonly string[],
  fresh: readonly string[],
  changes: readonly LineChange[],
): string[] {
  const blocks: (readonly string[])[] = [];
  let at = 0;
  for (const { start, end, newStart, newEnd } of changes) {
    blocks.push(fresh.slice(at, newStart), old.slice(start, end));
    at = newEnd;
  }
  return [...blocks, fresh.slice(at)].flat();
}

export interface Merge {
  readonly lines: string[];
  /** Whether both sides changed the same lines in different ways. */
  readonly hasConflict: boolean;
}

/** Applies the changes of both sides to `base`. In a conflict the lines of the preferred side are taken. */
export function mergeLines(
  base: readonly string[],
  ours: readonly string[],
  theirs: readonly string[],
  preferred: "ours" | "theirs" = "ours",
): Merge {
  const sides = { ours: new Side(base, ours), theirs: new Side(base, theirs) };
  const blocks: (readonly string[])[] = [];
  let at = 0;
  let hasConflict = false;
  for (;;) {
    const [one, other] = [sides.ours.next, sides.theirs.next];
    const first = one === undefined || (other !== undefined && isBefore(other, one)) ? other : one;
    if (first === undefined) break;
    const range = { start: first.start, end: first.end };
    let isGrowing = true;
    while (isGrowing) isGrowing = [sides.ours.extend(range), sides.theirs.extend(range)].includes(true);
    blocks.push(base.slice(at, range.start));
    at = range.end;
    const [own, foreign] = [sides.ours.take(range), sides.theirs.take(range)];
    const isContested = own !== undefined && foreign !== undefined && !isEqual(own, foreign);
    hasConflict ||= isContested;
    blocks.push((isContested && preferred === "theirs" ? foreign : (own ?? foreign)) ?? []);
  }
  return { lines: [...blocks, base.slice(at)].flat(), hasConflict };
}

interface Range {
  start: number;
  end: number;
}

/** The changes of one side of a merge, taken from the first to the last. */
class Side {
  readonly #lines: readonly string[];
  readonly #changes: readonly LineChange[];
  #taken = 0;
  /** Changes in the range that is being built. */
  #inRange = 0;
  /** Lines that the taken changes added, less those that they removed. */
  #shift = 0;

  constructor(base: readonly string[], lines: readonly string[]) {
    this.#lines = lines;
    this.#changes = findLineChanges(base, lines);
  }

  get next(): LineChange | undefined {
    return this.#changes[this.#taken];
  }

  /** Extends the range by the next change if they overlap. Returns whether they did. */
  extend(range: Range): boolean {
    const change = this.#changes[this.#taken + this.#inRange];
    if (change === undefined || !overlaps(change, range)) return false;
    range.start = Math.min(range.start, change.start);
    range.end = Math.max(range.end, change.end);
    this.#inRange++;
    return true;
  }

  /** Returns this side's lines of the range; undefined if it changed none of them. */
  take({ start, end }: Range): readonly string[] | undefined {
    const changes = this.#changes.slice(this.#taken, this.#taken + this.#inRange);
    const shift = changes.reduce((sum, one) => sum + one.newEnd - one.newStart - one.end + one.start, 0);
    const lines = this.#lines.slice(start + this.#shift, end + this.#shift + shift);
    this.#taken += this.#inRange;
    this.#inRange = 0;
    this.#shift += shift;
    return changes.length === 0 ? undefined : lines;
  }
}

function isBefore(one: Range, other: Range): boolean {
  return one.start < other.start || (one.start === other.start && one.end < other.end);
}

/** Lines that are inserted at the edge of a range do not overlap with it, except with others at the same place. */
function overlaps(one: Range, other: Range): boolean {
  const isSamePlace = one.start === other.start && one.end === other.end;
  return isSamePlace || (one.start < other.end && other.start < one.end);
}

function isEqual(one: readonly string[], other: readonly string[]): boolean {
  return one.length === other.length && one.every((line, index) => line === other[index]);
}

function toChanges(
  blocks: readonly { readonly count: number; readonly added: boolean; readonly removed: boolean }[],
  offset: number,
): LineChange[] {
  const changes: LineChange[] = [];
  let [at, newAt] = [offset, offset];
  let open: LineChange | undefined;
  for (const { count, added, removed } of blocks) {
    if (!added && !removed) {
      if (open !== undefined) changes.push(open);
      open = undefined;
      at += count;
      newAt += count;
      continue;
    }
    const { start, newStart } = open ?? { start: at, newStart: newAt };
    if (removed) at += count;
    else newAt += count;
    open = { start, end: at, newStart, newEnd: newAt };
  }
  return open === undefined ? changes : [...changes, open];
}
