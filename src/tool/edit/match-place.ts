import { lazy } from "../../base/lazy.ts";
import { compareLines, completeIndents, pairEqualLines, placeChange } from "./match-change.ts";
import { splitLines } from "./match-source.ts";
import type { MatchPlace, Source, Span, EditQuery } from "./match-source.ts";

export function createEditQuery(needle: string, replacement: string, all: boolean): EditQuery {
  return {
    needle,
    replacement,
    all,
    change: lazy(() => compareLines(splitLines(needle), splitLines(replacement))),
  };
}

/** Returns the edit without blank lines around the old text and without those that the new text shares. */
export function trimBlankLines({ needle, replacement, all }: EditQuery): EditQuery {
  const old = needle.split("\n");
  const fresh = replacement.split("\n");
  const above = countLeadingBlanks(old);
  const below = countLeadingBlanks(old.toReversed());
  const core = old.slice(above, old.length - below).join("\n");
  if (replacement.trim() === "") return createEditQuery(`${core}\n`, "", all);
  const begin = Math.min(above, countLeadingBlanks(fresh));
  const end = fresh.length - Math.min(below, countLeadingBlanks(fresh.toReversed()));
  return createEditQuery(core, fresh.slice(begin, end).join("\n"), all);
}

function countLeadingBlanks(lines: readonly string[]): number {
  const first = lines.findIndex((line) => line.trim() !== "");
  return first === -1 ? lines.length : first;
}

/** Creates a place of whole lines; the new text gets their indentation. */
export function createLinesPlace(
  source: Source,
  wanted: EditQuery,
  first: number,
  count: number,
): MatchPlace {
  const span = source.linesSpan(first, count, wanted.needle.endsWith("\n"));
  const found = pairEqualLines(splitLines(wanted.needle), source.lines.slice(first, first + count));
  return { ...span, replacement: joinLines(placeChange(wanted.change(), found), wanted) };
}

function joinLines(lines: readonly string[], { replacement }: EditQuery): string {
  const end = replacement.length > 1 && replacement.endsWith("\n") ? "\n" : "";
  return lines.join("\n") + end;
}

/** Creates a place for an exact match. New lines without indentation get that of the lines they replace. */
export function createExactPlace(source: Source, wanted: EditQuery, start: number): MatchPlace {
  const span = { start, end: start + wanted.needle.length };
  const place = { ...span, replacement: wanted.replacement };
  if (!wanted.needle.includes("\n")) return place;
  const lines = splitLines(wanted.needle);
  const { first, indent } = locateInLine(source, start);
  if (indent === "" || indent.trim() !== "") return place;
  const found = source.lines.slice(first, first + lines.length);
  const completed = completeIndents(wanted.change(), found);
  if (completed === undefined) return place;
  const text = joinLines(completed, wanted);
  if (!text.startsWith(indent)) return place;
  return { ...span, replacement: text.slice(indent.length), indented: true };
}

/** Returns the line of an offset and the text before it in that line. */
function locateInLine(source: Source, start: number) {
  const first = source.lineAt(start);
  const begin = source.starts[first] ?? 0;
  return { first, begin, indent: source.text.slice(begin, start) };
}

/** Creates a place for the same words with other line breaks. At the start of a line, new lines get the file's indentation. */
export function createWordsPlace(source: Source, wanted: EditQuery, span: Span): MatchPlace {
  const { begin, indent } = locateInLine(source, span.start);
  const replacement = removeSharedBoundary(wanted);
  if (indent.trim() !== "" || !replacement.includes("\n")) return { ...span, replacement };
  const core = trimBlankLines(wanted);
  const text = joinLines(placeChange(core.change(), findLinesOfWords(source, core, span)), core).trimEnd();
  return { start: begin, end: span.end, replacement: text };
}

/** Finds for each old line the file's line that begins with the same word. */
function findLinesOfWords(
  source: Source,
  { needle }: EditQuery,
  { start, end }: Span,
): (string | undefined)[] {
  const starts = [...source.text.slice(start, end).matchAll(/\S+/g)].map(({ index }) => start + index);
  let word = 0;
  return splitLines(needle).map((line) => {
    const count = line.match(/\S+/g)?.length ?? 0;
    const at = starts[word];
    word += count;
    if (at === undefined || count === 0) return undefined;
    const { first, indent } = locateInLine(source, at);
    return indent.trim() === "" ? source.lines[first] : undefined;
  });
}

/** Removes surrounding blanks that the old text has too: the file keeps its own. */
function removeSharedBoundary({ needle, replacement }: EditQuery): string {
  const before = /^\s*/.exec(needle)?.[0] ?? "";
  const after = /\s*$/.exec(needle)?.[0] ?? "";
  const start = replacement.startsWith(before) ? before.length : 0;
  const rest = replacement.slice(start);
  return after !== "" && rest.endsWith(after) ? rest.slice(0, -after.length) : rest;
}
