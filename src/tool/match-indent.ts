import { linesOf } from "./match-source.ts";
import type { Place, Source, Wanted } from "./match-source.ts";

/** Whole lines as a place; the new text takes over the indentation that the lines have. */
export function linesPlace(source: Source, wanted: Wanted, first: number, count: number): Place {
  const span = source.linesSpan(first, count, wanted.needle.endsWith("\n"));
  const found = source.lines.slice(first, first + count);
  return { ...span, replacement: reindented(wanted, found) };
}

/** Translates indentation as the old text's lines translate to the lines found. */
function reindented({ needle, replacement }: Wanted, found: readonly string[]): string {
  const translations = indentTranslations(linesOf(needle), found);
  const lines = replacement.split("\n");
  const base = lines.find((line) => line.trim() !== "");
  // New text that begins at another depth than the old one was written with the file in view.
  if (base === undefined || !translations.has(indentOf(base))) return replacement;
  return lines.map((line) => translateIndent(line, translations)).join("\n");
}

/** How indentations of the old text read where it was found. */
export function indentTranslations(needle: readonly string[], found: readonly string[]): Map<string, string> {
  const translations = new Map<string, string>();
  // Where lines are more or fewer, only the first ones surely belong together.
  const pairs = needle.length === found.length ? needle : needle.slice(0, 1);
  for (const [index, line] of pairs.entries()) {
    const indent = indentOf(line);
    if (line.trim() === "" || translations.has(indent)) continue;
    translations.set(indent, indentOf(found[index] ?? ""));
  }
  return translations;
}

/** An indentation that the old text had not goes on from the deepest one that it had. */
export function translateIndent(line: string, translations: ReadonlyMap<string, string>): string {
  if (line.trim() === "") return line;
  const indent = indentOf(line);
  const known = [...translations.keys()].filter((key) => indent.startsWith(key));
  const deepest = known.sort((one, two) => two.length - one.length)[0];
  return deepest === undefined ? line : `${translations.get(deepest) ?? ""}${line.slice(deepest.length)}`;
}

/** The indentation that all lines share that are not blank. */
export function commonIndent(lines: readonly string[]): string {
  const indents = lines.filter((line) => line.trim() !== "").map(indentOf);
  const shortest = indents.sort((one, two) => one.length - two.length)[0] ?? "";
  return indents.every((indent) => indent.startsWith(shortest)) ? shortest : "";
}

function indentOf(line: string): string {
  return /^[ \t]*/.exec(line)?.[0] ?? "";
}
