import { lazy } from "../../base/lazy.ts";
import { compareLines, completeIndents, pairEqualLines, placeChange } from "./match-change.ts";
import { linesOf } from "./match-source.ts";
import type { MatchPlace, Source, Span, Wanted } from "./match-source.ts";

export function wantedEdit(needle: string, replacement: string, all: boolean): Wanted {
  return {
    needle,
    replacement,
    all,
    change: lazy(() => compareLines(linesOf(needle), linesOf(replacement))),
  };
}

/** The same edit without blank lines around the old text, nor those that the new text shares with it. */
export function withoutBlankLines({ needle, replacement, all }: Wanted): Wanted {
  const old = needle.split("\n");
  const fresh = replacement.split("\n");
  const above = blanksBefore(old);
  const below = blanksBefore(old.toReversed());
  const core = old.slice(above, old.length - below).join("\n");
  if (replacement.trim() === "") return wantedEdit(`${core}\n`, "", all);
  const begin = Math.min(above, blanksBefore(fresh));
  const end = fresh.length - Math.min(below, blanksBefore(fresh.toReversed()));
  return wantedEdit(core, fresh.slice(begin, end).join("\n"), all);
}

function blanksBefore(lines: readonly string[]): number {
  const first = lines.findIndex((line) => line.trim() !== "");
  return first === -1 ? lines.length : first;
}

/** Whole lines as a place; the new text gets the indentation that the lines have. */
export function linesPlace(source: Source, wanted: Wanted, first: number, count: number): MatchPlace {
  const span = source.linesSpan(first, count, wanted.needle.endsWith("\n"));
  const found = pairEqualLines(linesOf(wanted.needle), source.lines.slice(first, first + count));
  return { ...span, replacement: joined(placeChange(wanted.change(), found), wanted) };
}

function joined(lines: readonly string[], { replacement }: Wanted): string {
  const end = replacement.length > 1 && replacement.endsWith("\n") ? "\n" : "";
  return lines.join("\n") + end;
}

/** Text that was found as written. New lines without any indentation get that of the lines they replace. */
export function exactPlace(source: Source, wanted: Wanted, start: number): MatchPlace {
  const span = { start, end: start + wanted.needle.length };
  const place = { ...span, replacement: wanted.replacement };
  if (!wanted.needle.includes("\n")) return place;
  const lines = linesOf(wanted.needle);
  const { first, indent } = beginning(source, start);
  if (indent === "" || indent.trim() !== "") return place;
  const found = source.lines.slice(first, first + lines.length);
  const completed = completeIndents(wanted.change(), found);
  if (completed === undefined) return place;
  const text = joined(completed, wanted);
  if (!text.startsWith(indent)) return place;
  return { ...span, replacement: text.slice(indent.length), indented: true };
}

/** The line in which the offset is, and the text before it in that line. */
function beginning(source: Source, start: number) {
  const first = source.lineAt(start);
  const begin = source.starts[first] ?? 0;
  return { first, begin, indent: source.text.slice(begin, start) };
}

/** The old text's words, broken into other lines. Where they begin a line, new lines get the file's indentation. */
export function wordsPlace(source: Source, wanted: Wanted, span: Span): MatchPlace {
  const { begin, indent } = beginning(source, span.start);
  const replacement = withoutSharedBoundary(wanted);
  if (indent.trim() !== "" || !replacement.includes("\n")) return { ...span, replacement };
  const core = withoutBlankLines(wanted);
  const text = joined(placeChange(core.change(), linesOfWords(source, core, span)), core).trimEnd();
  return { start: begin, end: span.end, replacement: text };
}

/** For each line of the old text the file's line that begins with the same word. */
function linesOfWords(source: Source, { needle }: Wanted, { start, end }: Span): (string | undefined)[] {
  const starts = [...source.text.slice(start, end).matchAll(/\S+/g)].map(({ index }) => start + index);
  let word = 0;
  return linesOf(needle).map((line) => {
    const count = line.match(/\S+/g)?.length ?? 0;
    const at = starts[word];
    word += count;
    if (at === undefined || count === 0) return undefined;
    const { first, indent } = beginning(source, at);
    return indent.trim() === "" ? source.lines[first] : undefined;
  });
}

/** The new text without the blanks around it that the old text has too and the file has in its own way. */
function withoutSharedBoundary({ needle, replacement }: Wanted): string {
  const before = /^\s*/.exec(needle)?.[0] ?? "";
  const after = /\s*$/.exec(needle)?.[0] ?? "";
  const start = replacement.startsWith(before) ? before.length : 0;
  const rest = replacement.slice(start);
  return after !== "" && rest.endsWith(after) ? rest.slice(0, -after.length) : rest;
}
