import { placeChange, refineChange } from "../edit/match-change.ts";
import { findRuns } from "../edit/match-runs.ts";
import { plainPunctuation } from "../edit/match-source.ts";
import { describeNearest } from "../edit/nearest-lines.ts";
import type { Hunk } from "./patch.ts";
import { isProof } from "../text-file.ts";
import { ToolFailure } from "../tool.ts";

export interface PatchedText {
  readonly text: string;
  /** Hunks, from 1, whose lines differ slightly from the file's. */
  readonly tolerated: readonly number[];
  /** Whether each change matched exactly one place by exact lines, which proves that the model knows them. */
  readonly isKnown: boolean;
}

interface Line {
  readonly text: string;
  /** May be empty for the last line of a file. */
  readonly end: "\n" | "\r\n" | "";
}

/** Lines of the file that may match a hunk. */
interface Place {
  readonly first: number;
  readonly count: number;
  /** Index into {@link readings}. */
  readonly reading: number;
}

/** Normalizations for comparing lines, from strict to tolerant; lines equal in one are equal in all later ones. */
const readings: readonly ((line: string) => string)[] = [
  (line) => line,
  (line) => line.trimEnd(),
  (line) => line.trim(),
  (line) => plainPunctuation(line.trim()),
];

/**
 * Applies the hunks.
 *
 * - Each hunk must match exactly one place, by itself or by the order of the hunks.
 * - Unchanged lines stay as they are in the file.
 * - Throws {@link ToolFailure} for a hunk that matches no place or several places.
 */
export function applyHunks(text: string, given: readonly Hunk[], lineEnd: "\n" | "\r\n"): PatchedText {
  const source = new Source(text);
  const all = given.map((hunk) => addForgottenBlanks(source, hunk));
  const found = all.map((hunk, index) => ({
    hunk,
    candidates: findPlaces(source, hunk, nameOf(index, all.length)),
  }));
  // Hunks without changes must match somewhere, in any place.
  const changing = found.filter(({ hunk }) => hunk.lines.some(({ kind }) => kind !== "keep"));
  const places = choosePlaces(changing.map(({ candidates }) => candidates));
  const chosen = changing.map(({ hunk }, index) => ({ hunk, place: places[index] ?? failMissingPlace() }));
  const tolerated = chosen.flatMap(({ hunk, place }) => (place.reading > 0 ? [all.indexOf(hunk) + 1] : []));
  const isKnown =
    changing.length > 0 &&
    changing.every(
      ({ hunk, candidates }, index) =>
        candidates.places.length === 1 && places[index]?.reading === 0 && isProof(oldLines(hunk).join("\n")),
    );
  return { text: joinLines(source, replaceLines(source, chosen, lineEnd), lineEnd), tolerated, isKnown };
}

/** Adds the forgotten marker blank to unchanged lines if the hunk matches only with it. */
function addForgottenBlanks(source: Source, hunk: Hunk): Hunk {
  const lines = hunk.lines.map((line) => {
    const isPlain = line.kind !== "keep" || line.text === "";
    return isPlain ? line : { ...line, text: ` ${line.text}` };
  });
  const other = { ...hunk, lines };
  return !matchesExactly(source, hunk) && matchesExactly(source, other) ? other : hunk;
}

function matchesExactly(source: Source, hunk: Hunk): boolean {
  return findRuns(oldLines(hunk), source.read(0)).next().done !== true;
}

/** A file's lines, normalized lazily for each reading. */
class Source {
  readonly lines: readonly Line[];
  readonly #read: (readonly string[])[] = [];

  constructor(text: string) {
    this.lines = splitLines(text);
  }

  read(reading: number): readonly string[] {
    return (this.#read[reading] ??= this.lines.map(({ text }) => readLine(reading, text)));
  }
}

function readLine(reading: number, line: string): string {
  return readings[reading]?.(line) ?? line;
}

function splitLines(text: string): Line[] {
  const lines: Line[] = [];
  let begin = 0;
  for (let at = text.indexOf("\n"); at !== -1; at = text.indexOf("\n", begin)) {
    const isWindows = at > begin && text[at - 1] === "\r";
    lines.push({ text: text.slice(begin, isWindows ? at - 1 : at), end: isWindows ? "\r\n" : "\n" });
    begin = at + 1;
  }
  if (begin < text.length) lines.push({ text: text.slice(begin), end: "" });
  return lines;
}

function nameOf(index: number, count: number): string {
  return count === 1 ? "The hunk" : `Hunk ${index + 1} of ${count}`;
}

interface Candidates {
  readonly name: string;
  /** In file order; at least one. */
  readonly places: readonly Place[];
}

/** Finds the places of a hunk with the strictest reading that matches. */
function findPlaces(source: Source, hunk: Hunk, name: string): Candidates {
  const old = oldLines(hunk);
  if (old.length === 0) return { name, places: findInsertionPlaces(source, hunk, name) };
  const scopes = findScopes(source, hunk, old, name);
  for (const reading of readings.keys()) {
    const wanted = old.map((line) => readLine(reading, line));
    const places: Place[] = [];
    for (const first of findRuns(wanted, source.read(reading))) {
      if (!isInScope(source, hunk, first, old.length, scopes)) continue;
      places.push({ first, count: old.length, reading });
      if (places.length > placeLimit) throw new ToolFailure(describeAmbiguity({ name, places }));
    }
    if (places.length > 0) return { name, places };
  }
  throw new ToolFailure(`${name} fits nowhere: ${missingReason(source, hunk, old)}`);
}

const readAgain = "Read the file there and copy its lines exactly. Nothing was changed.";

function missingReason(source: Source, hunk: Hunk, old: readonly string[]): string {
  const trimmed = old.map((line) => line.trim());
  const elsewhere: number[] = [];
  for (const first of findRuns(trimmed, source.read(2))) if (elsewhere.push(first) > shownPlaces) break;
  const at = shownLines(elsewhere);
  if (elsewhere.length === 0) {
    const text = source.lines.map((line) => line.text).join("\n");
    const nearest = describeNearest(text, old.join("\n"), "the hunk");
    if (nearest !== undefined) return `the file does not have its lines. ${nearest} Nothing was changed.`;
    return `the file does not have its lines, from ${quote(old[0] ?? "")} on. ${readAgain}`;
  }
  if (hunk.atEnd) return `its lines are at line ${at}, not at the end of the file. ${readAgain}`;
  return `its lines are at line ${at}, which is not below ${hunk.anchors.map(quote).join(" and ")}. ${readAgain}`;
}

/** Places hunks without old lines after their `@@` line, or at the end of the file. */
function findInsertionPlaces(source: Source, hunk: Hunk, name: string): Place[] {
  const { length } = source.lines;
  if (hunk.atEnd || length === 0) return [{ first: length, count: 0, reading: 0 }];
  if (hunk.anchors.length === 0)
    throw new ToolFailure(
      `${name} has only new lines: nothing says where they belong. Give lines around them that stay, or "*** End of File". Nothing was changed.`,
    );
  return findAnchorPlaces(source, hunk.anchors, name).map((at) => ({ first: at + 1, count: 0, reading: 0 }));
}

/** Range of lines, from the anchor to the one before `end`. */
interface Scope {
  readonly begin: number;
  readonly end: number;
}

function findScopes(source: Source, { anchors }: Hunk, old: readonly string[], name: string): Scope[] {
  if (anchors.length === 0) return [{ begin: 0, end: source.lines.length }];
  const depth = indentDepth(old.find((line) => line.trim() !== "") ?? "");
  return findAnchorPlaces(source, anchors, name).map((begin) => ({
    begin,
    end: findScopeEnd(source, begin, depth),
  }));
}

function isInScope(
  source: Source,
  { atEnd }: Hunk,
  first: number,
  count: number,
  scopes: readonly Scope[],
): boolean {
  if (atEnd && first + count !== source.lines.length) return false;
  return scopes.some(({ begin, end }) => first >= begin && first < end);
}

/** An anchor with more matches is too common. */
const anchorLimit = 1000;

/** Finds the lines of the last anchor, each within the scope of the previous anchors. */
function findAnchorPlaces(source: Source, anchors: readonly string[], name: string): number[] {
  let above: Scope[] = [{ begin: -1, end: source.lines.length }];
  for (const anchor of anchors) {
    const found = findAnchorPositions(source, anchor);
    const below = found.filter((at) => above.some(({ begin, end }) => at > begin && at < end));
    if (below.length === 0)
      throw new ToolFailure(
        `${name} fits nowhere: the file has no line ${quote(anchor)} there. ${readAgain}`,
      );
    if (below.length > anchorLimit)
      throw new ToolFailure(
        `${name} may be in too many places: ${below.length} lines are ${quote(anchor)}. Name one that is rarer.`,
      );
    above = below.map((begin) => ({ begin, end: findScopeEnd(source, begin, Infinity) }));
  }
  return above.map(({ begin }) => begin);
}

/** Finds the lines of an anchor; the beginning of a declaration is enough. */
function findAnchorPositions(source: Source, anchor: string): number[] {
  for (const reading of readings.keys()) {
    const found = [...findRuns([readLine(reading, anchor)], source.read(reading))];
    if (found.length > 0) return found;
  }
  const beginning = anchor.trim();
  return source.read(2).flatMap((line, at) => (line.startsWith(beginning) ? [at] : []));
}

/**
 * Returns the end of the block that the anchor opens: the next line that begins with a word and is not deeper than the
 * anchor. For lines that are not deeper than the anchor, the scope extends to the end of the file.
 */
function findScopeEnd({ lines }: Source, anchor: number, depth: number): number {
  const own = indentDepth(lines[anchor]?.text ?? "");
  if (depth <= own) return lines.length;
  const end = lines.findIndex(({ text }, at) => at > anchor && opensNext(text, own));
  return end === -1 ? lines.length : end;
}

/** Labels and further branches of a statement do not end the block above. */
const branches =
  /^(?:public|private|protected|case|default|else|elif|elsif|except|finally|catch|rescue|ensure)\b/;

function opensNext(text: string, depth: number): boolean {
  return /^\s*[\p{L}_@]/u.test(text) && indentDepth(text) <= depth && !branches.test(text.trim());
}

/** A tab counts as one blank: compared lines use the same characters. */
function indentDepth(line: string): number {
  return line.length - line.trimStart().length;
}

/** Chooses one place per hunk. Unique matches may be in any order; ambiguous ones are resolved by order. */
function choosePlaces(candidates: readonly Candidates[]): Place[] {
  const single = candidates.flatMap(({ places }) => (places.length === 1 ? places : []));
  if (single.length === candidates.length) return assertNoOverlap(single);
  const earliest = earliestPlaces(candidates);
  const latest = latestPlaces(candidates);
  const unsure = candidates.findIndex((_, index) => earliest[index] !== latest[index]);
  const ambiguous = candidates[unsure];
  if (ambiguous === undefined) return earliest;
  throw new ToolFailure(describeAmbiguity(ambiguous));
}

const shownPlaces = 10;
/** A hunk with more matches is not resolved by order. */
const placeLimit = 2_000;

/** Formats line numbers, from 1, up to a limit. */
function shownLines(firsts: readonly number[]): string {
  const shown = firsts.slice(0, shownPlaces).map((first) => first + 1);
  return `${shown.join(", ")}${firsts.length > shownPlaces ? " and others" : ""}`;
}

function describeAmbiguity({ name, places }: Candidates): string {
  const count = places.length > placeLimit ? `more than ${placeLimit}` : `${places.length}`;
  return `${name} fits in ${count} places (line ${shownLines(places.map(({ first }) => first))}). Give more lines around the place you mean, or name what it is in with @@. Nothing was changed.`;
}

function assertNoOverlap(places: readonly Place[]): Place[] {
  const sorted = places.toSorted((one, other) => one.first - other.first || one.count - other.count);
  const overlapping = sorted.some((place, index) => {
    const next = sorted[index + 1];
    return next !== undefined && next.first < place.first + place.count;
  });
  if (!overlapping) return [...places];
  throw new ToolFailure("Two hunks change the same lines. Make one of them. Nothing was changed.");
}

function earliestPlaces(candidates: readonly Candidates[]): Place[] {
  let from = 0;
  return candidates.map(({ name, places }) => {
    const place = places.find(({ first }) => first >= from) ?? failOutOfOrder(name);
    from = place.first + place.count;
    return place;
  });
}

function latestPlaces(candidates: readonly Candidates[]): Place[] {
  let to = Infinity;
  const backwards = candidates.toReversed().map(({ name, places }) => {
    const place = places.findLast(({ first, count }) => first + count <= to) ?? failOutOfOrder(name);
    to = place.first;
    return place;
  });
  return backwards.reverse();
}

function failOutOfOrder(name: string): never {
  throw new ToolFailure(
    `${name} does not fit in the order of the hunks. Write them in the order of their lines in the file. Nothing was changed.`,
  );
}

interface ChosenPlace {
  readonly hunk: Hunk;
  readonly place: Place;
}

function replaceLines(source: Source, chosen: readonly ChosenPlace[], lineEnd: "\n" | "\r\n"): Line[] {
  const lines: Line[] = [];
  let done = 0;
  for (const { hunk, place } of chosen.toSorted((one, other) => one.place.first - other.place.first)) {
    // One by one: a file may have more lines than a call can have arguments.
    for (const line of source.lines.slice(done, place.first)) lines.push(line);
    for (const line of createNewLines(source, hunk, place, lineEnd)) lines.push(line);
    done = place.first + place.count;
  }
  return lines.concat(source.lines.slice(done));
}

function createNewLines(source: Source, hunk: Hunk, place: Place, end: "\n" | "\r\n"): Line[] {
  const found = source.lines.slice(place.first, place.first + place.count);
  const change = refineChange(hunk.lines);
  const placed = placeChange(
    change,
    found.map(({ text }) => text),
  );
  let at = 0;
  return change
    .map(({ kind }) => ({ kind, own: kind === "insert" ? undefined : found[at++] }))
    .filter(({ kind }) => kind !== "remove")
    .map(({ own }, index) => own ?? { text: placed[index] ?? "", end });
}

/** Joins the lines; a file without a final newline stays without one. */
function joinLines(source: Source, lines: readonly Line[], lineEnd: "\n" | "\r\n"): string {
  const isEnded = source.lines.at(-1)?.end !== "";
  return lines
    .map(({ text, end }, index) => {
      if (index < lines.length - 1) return `${text}${end || lineEnd}`;
      return isEnded ? `${text}${end || lineEnd}` : text;
    })
    .join("");
}

function oldLines({ lines }: Hunk): string[] {
  return lines.flatMap(({ kind, text }) => (kind === "insert" ? [] : [text]));
}

function failMissingPlace(): never {
  throw new Error("a hunk was given no place");
}

function quote(line: string): string {
  return JSON.stringify(line.length > 120 ? `${line.slice(0, 120)}…` : line);
}
