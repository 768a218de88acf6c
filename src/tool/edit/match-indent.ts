/** Indentation of one line, as the model wrote it and in the file. */
export interface IndentPair {
  readonly written: string;
  readonly found: string;
}

/** Translates the model's indentation into the file's. */
export type TranslateIndent = (written: string) => string;

/** One level of indentation in both texts. */
interface Unit {
  readonly written: string;
  readonly found: string;
}

export function indentOf(line: string): string {
  return /^[ \t]*/.exec(line)?.[0] ?? "";
}

/** Indentation shared by all lines that are not blank. */
export function commonIndent(lines: readonly string[]): string {
  const indents = lines.filter((line) => line.trim() !== "").map(indentOf);
  const shortest = indents.sort((one, two) => one.length - two.length)[0] ?? "";
  return indents.every((indent) => indent.startsWith(shortest)) ? shortest : "";
}

/**
 * Finds one rule for all pairs: a shift, another unit, or a mapping of each indentation.
 *
 * - Returns undefined if the pairs contradict each other.
 * - `others` are further indentations that will be translated.
 */
export function fitIndents(
  pairs: readonly IndentPair[],
  others: readonly string[],
): TranslateIndent | undefined {
  const known = new Map<string, string>();
  for (const { written, found } of pairs) {
    if ((known.get(written) ?? found) !== found) return undefined;
    known.set(written, found);
  }
  const steps = [...known].sort(([one], [two]) => one.length - two.length);
  const [shallowest] = steps;
  if (shallowest === undefined || !isRising(steps)) return undefined;
  const unit = detectUnit(steps, others);
  return (written) => {
    const base = steps.findLast(([key]) => written.startsWith(key));
    if (base !== undefined) return base[1] + convertIndent(written.slice(base[0].length), unit);
    const [key, found] = shallowest;
    return key.startsWith(written) ? outdent(found, convertIndent(key.slice(written.length), unit)) : written;
  };
}

/** Translates an indentation relative to one line's. */
export function relativeTo({ written, found }: IndentPair, indent: string): string {
  if (indent.startsWith(written)) return found + indent.slice(written.length);
  return written.startsWith(indent) ? outdent(found, written.slice(indent.length)) : found;
}

function isRising(steps: readonly (readonly [string, string])[]): boolean {
  return steps.every(([written, found], index) => {
    const next = steps[index + 1];
    if (next === undefined) return true;
    return next[0].startsWith(written) && next[1].startsWith(found) && next[1].length > found.length;
  });
}

/** Returns undefined if both texts indent levels in the same way. */
function detectUnit(
  steps: readonly (readonly [string, string])[],
  others: readonly string[],
): Unit | undefined {
  const levels = steps
    .slice(1)
    .map(([written, found], index): Unit => {
      const [writtenBefore = "", foundBefore = ""] = steps[index] ?? [];
      return { written: written.slice(writtenBefore.length), found: found.slice(foundBefore.length) };
    })
    .sort((one, two) => one.written.length - two.written.length);
  const [level] = levels;
  return level === undefined ? guessUnit(steps[0] ?? ["", ""], others) : reduceUnit(level);
}

/** Reduces a unit to its smallest form: 4 blanks for 2 tabs become 2 blanks for a tab. */
function reduceUnit(unit: Unit): Unit {
  const parts = commonDivisor(unit.written.length, unit.found.length);
  const [written, found] = [unit.written, unit.found].map((text) => text.slice(0, text.length / parts));
  if (written?.repeat(parts) !== unit.written || found?.repeat(parts) !== unit.found) return unit;
  return { written, found };
}

function commonDivisor(one: number, other: number): number {
  return other === 0 ? one : commonDivisor(other, one % other);
}

const usualWidth = 4;

/** Guesses the unit from a single depth, if the texts indent with different characters. */
function guessUnit([written, found]: readonly [string, string], others: readonly string[]): Unit | undefined {
  const sample = written === "" ? findShortest(others) : written;
  if (/^ +$/.test(sample) && /^\t+$/.test(found)) {
    const width = written === "" ? sample.length : tabWidth(written.length, found.length);
    return { written: " ".repeat(width), found: "\t" };
  }
  if (/^\t+$/.test(sample) && /^ +$/.test(found)) {
    const width =
      written === "" ? Math.min(found.length, usualWidth) : tabWidth(found.length, written.length);
    return { written: "\t", found: " ".repeat(width) };
  }
  return undefined;
}

function findShortest(indents: readonly string[]): string {
  const some = indents.filter((indent) => indent !== "");
  return some.sort((one, two) => one.length - two.length)[0] ?? "";
}

function tabWidth(blanks: number, tabs: number): number {
  return blanks % tabs === 0 ? blanks / tabs : usualWidth;
}

function convertIndent(indent: string, unit: Unit | undefined): string {
  if (unit === undefined) return indent;
  const levels = Math.floor(indent.length / unit.written.length);
  if (!indent.startsWith(unit.written.repeat(levels))) return indent;
  return unit.found.repeat(levels) + indent.slice(levels * unit.written.length);
}

function outdent(indent: string, levels: string): string {
  return indent.slice(0, Math.max(0, indent.length - levels.length));
}
