import { basename } from "node:path/posix";
import { hasFlag, parseOptions, splitWords } from "./options.ts";
import type { ParsedOptions } from "./options.ts";
import type { EvalContext, Scan, ShownText } from "../facts.ts";
import { isSystemProgram, listGlobMatches } from "../syntax/paths.ts";
import { findProgram } from "./program-table.ts";
import type { Program } from "./program-table.ts";
import { knownText, literalArgument } from "../syntax/word.ts";
import type { Argument } from "../syntax/word.ts";

/** Programs that print whole files. */
const wholePrinters = splitWords("cat nl bat batcat");
/** Programs that print the beginning or the end of files. */
const partPrinters = splitWords("head tail");
/** Programs that print the matching lines of files. */
const searchers = splitWords("grep egrep fgrep rg");
/** Programs that pass on lines of their input unchanged. */
const lineFilters = splitWords("cat nl head tail grep egrep fgrep rg less more");

/** Options of searchers that do not print whole lines. */
const countingFlags =
  "-c --count --count-matches -l --files-with-matches -L --files-without-match -q --quiet --silent -o --only-matching --files -r --replace --json";
const grepRecursiveFlags = "-r -R --recursive --dereference-recursive";

/** A sed script that prints lines without changing them: `1,20p`, `/a/,/b/p;50q`. */
const printScript =
  /^\s*(?:(?:\d+|\$|\/(?:[^/\\]|\\.)+\/)(?:\s*,\s*\+?(?:\d+|\$|\/(?:[^/\\]|\\.)+\/))?\s*[pq]\s*;?\s*)+$/;

/** Whether the command prints lines of its input unchanged, and reads nothing else. */
export function filtersLines(argv: readonly Argument[]): boolean {
  const known = identify(argv);
  if (known === undefined) return false;
  const { name, program, options } = known;
  const operands = countOperands(name, program, options);
  if (name === "sed") return operands === 0 && printsOnly(options, program);
  const isCounting = searchers.has(name) && hasFlag(options, countingFlags);
  return lineFilters.has(name) && operands === 0 && !isCounting;
}

/** Returns the files whose lines the command prints unchanged. */
export function listShownText(scan: Scan, argv: readonly Argument[], evalContext: EvalContext): ShownText[] {
  const known = identify(argv);
  const [base, ...others] = evalContext.workingDirs ?? [];
  if (known === undefined || base === undefined || others.length > 0) return [];
  const { name, program, options } = known;
  const list = (extent: ShownText["extent"], operands: readonly Argument[]) =>
    operands.flatMap((operand) =>
      listPaths(scan, operand, base, evalContext.hasWideGlobs).map((path) => ({ path, extent, base })),
    );
  if (wholePrinters.has(name)) return list("whole", options.operands);
  if (partPrinters.has(name)) return list("part", options.operands);
  const files = options.operands.slice(countSkipped(program, options));
  if (name === "sed") return printsOnly(options, program) ? list("part", files) : [];
  if (!searchers.has(name) || hasFlag(options, name === "rg" ? countingFlags : grepCountingFlags)) return [];
  const isRecursive = name === "rg" || hasFlag(options, grepRecursiveFlags);
  const searched = files.length === 0 && isRecursive ? [literalArgument(".")] : files;
  const found = list("matches", searched);
  return found.length === 1 ? found.map((one) => ({ ...one, isAlone: true })) : found;
}

/** In `grep`, `-r` searches folders; in `rg` it replaces the matches. */
const grepCountingFlags = countingFlags.replace(" -r --replace", "");

interface IdentifiedProgram {
  readonly name: string;
  readonly program: Program;
  readonly options: ParsedOptions;
}

function identify([word, ...args]: readonly Argument[]): IdentifiedProgram | undefined {
  const written = word && knownText(word);
  if (written === undefined || (written.includes("/") && !isSystemProgram(written))) return undefined;
  const name = basename(written);
  const program = findProgram(name);
  if (program === undefined) return undefined;
  const options = parseOptions(args, program);
  return options.isUncertain ? undefined : { name, program, options };
}

function countSkipped(program: Program, options: ParsedOptions): number {
  return hasFlag(options, program.patternFlags) ? 0 : (program.skippedOperands ?? 0);
}

function countOperands(name: string, program: Program, options: ParsedOptions): number {
  const files = options.operands.slice(countSkipped(program, options)).filter(({ text }) => text !== "-");
  return wholePrinters.has(name) || lineFilters.has(name) || name === "sed" ? files.length : 0;
}

function printsOnly(options: ParsedOptions, program: Program): boolean {
  if (!hasFlag(options, "-n --quiet --silent") || hasFlag(options, "-i --in-place -f --file")) return false;
  const given = options.flags.filter(({ name }) => name === "-e" || name === "--expression");
  const scripts = given.length > 0 ? given.map(({ value }) => value) : options.operands.slice(0, 1);
  return (
    countSkipped(program, options) + given.length > 0 &&
    scripts.every((script) => script !== undefined && printScript.test(knownText(script) ?? ""))
  );
}

function listPaths(scan: Scan, operand: Argument, base: string, hasWideGlobs: boolean): string[] {
  const { values = [], splits } = operand;
  if (splits && !values.every(({ glob }) => glob)) return [];
  return values.flatMap((value) => {
    if (value.text === "-" || value.text === "") return [];
    if (value.glob) return hasWideGlobs ? [] : (listGlobMatches(scan, value.text, base) ?? []);
    return [scan.realPath(base, value.text)];
  });
}
