import { diffArrays } from "diff";
import { fitIndents, indentOf, relativeTo } from "./match-indent.ts";
import type { IndentPair, TranslateIndent } from "./match-indent.ts";
import { collapsed } from "./match-source.ts";
import type { ChangedLine } from "./match-source.ts";

const diffLimitMs = 200;
const diffLimitLines = 4_000;

/** Compares lines, ignoring indentation. */
export function compareLines(old: readonly string[], fresh: readonly string[], firstOld = 0): ChangedLine[] {
  const parts = diffArrays(trimAll(old), trimAll(fresh), {
    timeout: diffLimitMs,
    maxEditLength: diffLimitLines,
  });
  if (parts === undefined) return [...old.map(removed), ...fresh.map(inserted)];
  let [oldAt, freshAt] = [0, 0];
  return parts.flatMap(({ added, removed: isRemoved, count }): ChangedLine[] => {
    const oldLines = added ? [] : old.slice(oldAt, oldAt + count);
    const freshLines = isRemoved ? [] : fresh.slice(freshAt, freshAt + count);
    const first = firstOld + oldAt;
    oldAt += oldLines.length;
    freshAt += freshLines.length;
    if (added) return freshLines.map(inserted);
    if (isRemoved) return oldLines.map(removed);
    return oldLines.flatMap((line, index) => pairSameWords(line, freshLines[index] ?? "", first + index));
  });
}

/** Pairs lines that a change removes and inserts again, with the same or another indentation. */
export function refineChange(change: readonly ChangedLine[]): ChangedLine[] {
  let at = 0;
  return groupIntoRuns(change).flatMap(({ removed: old, inserted: fresh, kept }): ChangedLine[] => {
    const refined = compareLines(
      old,
      fresh.map(({ text }) => text),
      at,
    );
    at += old.length + (kept === undefined ? 0 : 1);
    return kept === undefined ? refined : [...refined, { kind: "keep", text: kept }];
  });
}

/** Returns the file's line for each old line; if the counts differ, only for the first and the last. */
export function pairEqualLines(old: readonly string[], found: readonly string[]): (string | undefined)[] {
  if (old.length === found.length) return [...found];
  const pairs: (string | undefined)[] = old.map(() => undefined);
  pairs[0] = found[0];
  pairs[old.length - 1] = found.at(-1);
  return pairs;
}

function pairSameWords(old: string, fresh: string, like: number): ChangedLine[] {
  if (old === fresh) return [{ kind: "keep", text: old }];
  return [removed(old), { ...inserted(fresh), like }];
}

function removed(text: string): ChangedLine {
  return { kind: "remove", text };
}

function inserted(text: string): ChangedLine {
  return { kind: "insert", text };
}

function trimAll(lines: readonly string[]): string[] {
  return lines.map((line) => line.trim());
}

/**
 * Returns the new text's lines for the place where the old text was found. Unchanged lines stay as the file has them,
 * inserted ones get the file's indentation. `found` holds the file's line for each old line, undefined if there is none.
 */
export function placeChange(
  change: readonly ChangedLine[],
  found: readonly (string | undefined)[],
): string[] {
  const lines = alignLines(change, found);
  const indent = chooseIndents(lines.old, lines.fresh);
  return lines.fresh.map((line) => {
    if (line.own !== undefined) return line.own;
    return line.text.trim() === "" ? line.text : indent(line) + line.text.slice(line.indent.length);
  });
}

/**
 * Returns the new lines for text that was found exactly, starting after the indentation of its first line. Undefined
 * unless the new text lacks the indentation of all lines.
 */
export function completeIndents(
  change: readonly ChangedLine[],
  found: readonly string[],
): readonly string[] | undefined {
  const { old, fresh } = alignLines(change, found);
  const [first, ...rest] = old;
  if (first === undefined || rest.length === 0) return undefined;
  return isDedented(first, rest, filterNonBlank(fresh)) ? placeChange(change, found) : undefined;
}

interface OldLine extends IndentPair {
  readonly text: string;
}

interface NewLine {
  readonly text: string;
  readonly indent: string;
  /** The old line with the same words. */
  readonly same?: OldLine | undefined;
  /** The old line that most likely has the same depth. */
  readonly near?: OldLine | undefined;
  /** The file's line, if it stays unchanged. */
  readonly own?: string | undefined;
}

interface AlignedLines {
  /** Lines that are not blank and whose line in the file is known. */
  readonly old: readonly OldLine[];
  readonly fresh: readonly NewLine[];
}

function alignLines(change: readonly ChangedLine[], found: readonly (string | undefined)[]): AlignedLines {
  const texts = change.flatMap(({ kind, text }) => (kind === "insert" ? [] : [text]));
  const old = texts.map((text, index) => createOldLine(text, found[index]));
  const fresh: NewLine[] = [];
  let at = 0;
  for (const run of groupIntoRuns(change)) {
    const replaced = old.slice(at, at + run.removed.length).filter((line) => line !== undefined);
    for (const [index, { text, like }] of run.inserted.entries()) {
      const same = like === undefined ? undefined : old[like];
      const near = same ?? replaced[Math.min(index, replaced.length - 1)] ?? findNeighbour(old, at);
      fresh.push({ text, indent: indentOf(text), same, near });
    }
    at += run.removed.length;
    if (run.kept === undefined) continue;
    const own = found[at];
    const same = old[at++];
    const isSame = own !== undefined && collapsed(run.kept) === collapsed(own);
    fresh.push({
      text: run.kept,
      indent: indentOf(run.kept),
      same,
      near: same,
      own: isSame ? own : undefined,
    });
  }
  return { old: old.filter((line) => line !== undefined), fresh };
}

/** Returns undefined for blank lines and lines without a match in the file. */
function createOldLine(text: string, found: string | undefined): OldLine | undefined {
  if (text.trim() === "" || found === undefined || found.trim() === "") return undefined;
  return { text, written: indentOf(text), found: indentOf(found) };
}

/** Replaced lines, up to an unchanged line. */
interface Run {
  readonly removed: string[];
  readonly inserted: ChangedLine[];
  kept?: string;
}

function groupIntoRuns(change: readonly ChangedLine[]): Run[] {
  const runs: Run[] = [{ removed: [], inserted: [] }];
  for (const line of change) {
    const run = runs.at(-1);
    if (run === undefined) break;
    if (line.kind === "remove") run.removed.push(line.text);
    else if (line.kind === "insert") run.inserted.push(line);
    else {
      run.kept = line.text;
      runs.push({ removed: [], inserted: [] });
    }
  }
  return runs;
}

/** Returns the line whose depth inserted lines get: the one above, or the one below if a block opens. */
function findNeighbour(old: readonly (OldLine | undefined)[], at: number): OldLine | undefined {
  const above = old.slice(0, at).findLast((line) => line !== undefined);
  const below = old.slice(at).find((line) => line !== undefined);
  if (above === undefined || below === undefined) return above ?? below;
  const opens = /[:{([]$/.test(above.text.trimEnd()) && below.found.length > above.found.length;
  return opens ? below : above;
}

type IndentOfLine = (line: NewLine) => string;

function chooseIndents(old: readonly OldLine[], fresh: readonly NewLine[]): IndentOfLine {
  const words = filterNonBlank(fresh);
  const isAsWritten = old.every(({ written, found }) => written === found) || matchesFileIndent(old, words);
  if (isAsWritten) return ({ indent }) => indent;
  const [first, ...rest] = old;
  if (first === undefined) return ({ indent }) => indent;
  const fits = fitIndents(old, indentsOf(words));
  const restFits = fitIndents(rest, indentsOf(words));
  const hasOthers = rest.some(({ written }) => written !== "");
  const lostFirst = first.written === "" && first.found !== "" && hasOthers;
  const restIsExact = rest.every(({ written, found }) => written === found);
  if (restFits !== undefined && lostFirst && (restIsExact || fits === undefined))
    return indentWithoutFirst({ first, rest, words, restFits });
  return fits === undefined ? indentWithoutAny(old, first, words) : ({ indent }) => fits(indent);
}

function filterNonBlank(lines: readonly NewLine[]): NewLine[] {
  return lines.filter(({ text }) => text.trim() !== "");
}

/** Whether the new text has the file's indentation although the old text lost it. */
function matchesFileIndent(old: readonly OldLine[], words: readonly NewLine[]): boolean {
  const shared = words.flatMap(({ same, indent }) => (same === undefined ? [] : [{ same, indent }]));
  const isOnlyIndented = shared.length === words.length && shared.length === old.length;
  const depth = Math.min(...old.map(({ found }) => found.length));
  return (
    !isOnlyIndented &&
    old.every(({ written }) => written === old[0]?.written) &&
    shared.some(({ same }) => same.written !== same.found) &&
    shared.every(({ same, indent }) => indent === same.found) &&
    words.every(({ indent }) => indent.length >= depth)
  );
}

interface LostFirst {
  readonly first: OldLine;
  readonly rest: readonly OldLine[];
  readonly words: readonly NewLine[];
  readonly restFits: TranslateIndent;
}

/** For old text that starts after the indentation of its first line. */
function indentWithoutFirst({ first, rest, words, restFits }: LostFirst): IndentOfLine {
  const [begin] = words;
  if (!isDedented(first, rest, words))
    return (line) => (line === begin && line.indent === "" ? first.found : restFits(line.indent));
  if (isFlat(words)) return ({ near, indent }) => near?.found ?? indent;
  return ({ indent }) => first.found + indent;
}

/** Whether all lines of the new text lost the indentation that only the first one of the old text lost. */
function isDedented(first: OldLine, rest: readonly OldLine[], words: readonly NewLine[]): boolean {
  if (rest.some(({ written }) => written === "")) return false;
  const shared = words.slice(1).flatMap(({ same, indent }) => (same === undefined ? [] : [{ same, indent }]));
  if (shared.length > 0) return shared.every(({ same, indent }) => same.found === first.found + indent);
  return words.length > 1 && isFlat(words) && !closesMore(words);
}

function isFlat(words: readonly NewLine[]): boolean {
  return words.every(({ indent }) => indent === words[0]?.indent);
}

/** Whether the text closes more brackets than it opens; such lines end a block that began before them. */
function closesMore(words: readonly NewLine[]): boolean {
  const text = words.map((line) => line.text).join("\n");
  return (text.match(/[)\]}]/g)?.length ?? 0) > (text.match(/[([{]/g)?.length ?? 0);
}

/** For old text without useful indentation: each line gets that of the line that it replaces. */
function indentWithoutAny(old: readonly OldLine[], first: OldLine, words: readonly NewLine[]): IndentOfLine {
  const isLost = old.every(({ written }) => written === first.written);
  const fits = fitIndents([first], indentsOf(words));
  if (isLost && !isFlat(words) && fits !== undefined) return ({ indent }) => fits(indent);
  return ({ near, indent }) => (near === undefined ? indent : relativeTo(near, indent));
}

function indentsOf(words: readonly NewLine[]): string[] {
  return words.map(({ indent }) => indent);
}
