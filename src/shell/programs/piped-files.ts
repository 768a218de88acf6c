import { basename } from "node:path/posix";
import { matchesWildcards } from "../../base/text/wildcards.ts";
import { findFlags, hasFlag, parseOptions, findUnknownFlags, splitWords } from "./options.ts";
import type { NameTerminator, EvalContext, Scan } from "../facts.ts";
import { isSystemProgram } from "../syntax/paths.ts";
import { findProgram } from "./program-table.ts";
import { knownText, literalArgument } from "../syntax/word.ts";
import type { Argument, Value } from "../syntax/word.ts";

/** Files whose names one program passes to another; undefined if they are unknown. */
export type PipedFiles = readonly Value[] | undefined;

/** Maximum number of entries below a folder; with more, the passed files are unknown. */
const entriesLimit = 2_000;

/** Programs that only read the files they are given. */
const readers = splitWords(
  "cat head tail wc grep egrep fgrep rg ls stat du file nl tac rev od hexdump strings cut fold sort sed awk jq diff cmp comm column paste join md5sum sha1sum sha256sum sha512sum b2sum shasum cksum basename dirname realpath readlink echo printf",
);

/** Whether the command only reads the files that are passed to it. */
export function isReader([program, ...args]: readonly Argument[]): boolean {
  const written = program && knownText(program);
  if (written === undefined || (written.includes("/") && !isSystemProgram(written))) return false;
  const name = basename(written);
  const known = findProgram(name);
  if (known === undefined || !readers.has(name)) return false;
  return findFlags(parseOptions(args, known), known.dangerousFlags).length === 0;
}

/** The arguments of `find`: options, start folders, and tests with actions. */
export interface FindWords {
  readonly options: readonly Argument[];
  readonly starts: readonly Argument[];
  readonly tests: readonly Argument[];
}

/** Lists the files that `find` passes to the action at index `action`; only earlier tests exclude files. */
export function listFoundFiles(
  scan: Scan,
  find: FindWords,
  action: number,
  evalContext: EvalContext,
): PipedFiles {
  const all = [...find.options, ...find.starts, ...find.tests];
  if (all.some(({ values, splits }) => values === undefined || splits)) return undefined;
  if (all.some(({ text }) => /^-(?:[A-Z]*[HL].*|f|follow|files0-from)$/.test(text))) return undefined;
  const starts = find.starts.length > 0 ? find.starts : [literalArgument(".")];
  return findFilesBelow(scan, starts, evalContext, createEntryFilter(find.tests, action));
}

/** Lists the files whose names a command prints, each followed by the terminator; undefined if unknown. */
export function listPrintedFiles(
  scan: Scan,
  argv: readonly Argument[],
  evalContext: EvalContext,
  end: NameTerminator,
): PipedFiles {
  const name = argv[0] && knownText(argv[0]);
  const args = argv.slice(1);
  switch (name) {
    case "find":
      return listFilesOfFind(scan, args, evalContext, end);
    case "rg":
      return listFilesOfSearch(scan, name, args, evalContext, end);
    case "grep":
      return (
        listFilesOfSearch(scan, name, args, evalContext, end) ??
        filterInputFiles(name, args, evalContext, end)
      );
    case "git":
      return listFilesOfGit(scan, args, evalContext, end);
    case "sort":
    case "uniq":
    case "head":
    case "tail":
      return filterInputFiles(name, args, evalContext, end);
    default:
      return undefined;
  }
}

/** Tests and actions with which `find` prints only names. */
const printingTests = /^-(?:print0?|type|i?name|i?path|maxdepth|mindepth|mtime|newer|size|not|o|prune)$/;

function listFilesOfFind(
  scan: Scan,
  args: readonly Argument[],
  evalContext: EvalContext,
  end: NameTerminator,
): PipedFiles {
  const find = splitFindWords(args);
  const prints = find.tests.every(
    ({ text }) => !text.startsWith("-") || /^-\d/.test(text) || printingTests.test(text),
  );
  const actions = find.tests.filter(({ text }) => text.startsWith("-print"));
  const endings = actions.map(({ text }): NameTerminator => (text === "-print0" ? "nul" : "line"));
  if (!prints || [...endings, ...(endings.length === 0 ? ["line"] : [])].some((one) => one !== end))
    return undefined;
  const action = find.tests.findIndex(({ text }) => text.startsWith("-print"));
  return rejectOddNames(listFoundFiles(scan, find, action, evalContext), end);
}

export function splitFindWords(args: readonly Argument[]): FindWords {
  const first = args.findIndex((arg) => /^(?:-(?!(?:[EHLPXdsx]+|[DO].*)$)|[(!])/.test(arg.text));
  const ahead = first === -1 ? args : args.slice(0, first);
  return {
    options: ahead.filter(({ text }) => text.startsWith("-")),
    starts: ahead.filter(({ text }) => !text.startsWith("-")),
    tests: first === -1 ? [] : args.slice(first),
  };
}

/** Options with which a search prints only names of files below its folders. */
const searchFlags =
  "-l --files-with-matches --files -i -w -F -e -E -P -r -s -S -n -x -g --glob -t --type --regexp --include --exclude --exclude-dir";

function listFilesOfSearch(
  scan: Scan,
  name: string,
  args: readonly Argument[],
  evalContext: EvalContext,
  end: NameTerminator,
): PipedFiles {
  const program = findProgram(name);
  if (program === undefined) return undefined;
  const options = parseOptions(args, program);
  if (options.isUncertain || findUnknownFlags(options, searchFlags, nulFlags[name]).length > 0)
    return undefined;
  if (hasFlag(options, nulFlags[name]) !== (end === "nul")) return undefined;
  if (!hasFlag(options, "-l --files-with-matches --files")) return undefined;
  if (name === "grep" && !hasFlag(options, "-r")) return undefined;
  const folders = options.operands.slice(hasFlag(options, program.patternFlags) ? 0 : 1);
  return listFilesBelow(scan, folders, evalContext, end);
}

const nulFlags: Readonly<Record<string, string>> = { rg: "-0 --null", grep: "-Z --null" };

function listFilesOfGit(
  scan: Scan,
  args: readonly Argument[],
  evalContext: EvalContext,
  end: NameTerminator,
): PipedFiles {
  const expected = end === "nul" ? "ls-files -z" : "ls-files";
  return args.map(({ text }) => text).join(" ") === expected
    ? listFilesBelow(scan, [], evalContext, end)
    : undefined;
}

/** Options with which a filter prints some lines of its input unchanged. */
const filterFlags: Readonly<Record<string, string>> = {
  grep: "-v -i -E -F -P -w -x --invert-match",
  sort: "-r -n -u -f -V --reverse --unique",
  uniq: "",
  head: "-n --lines",
  tail: "-n --lines",
};

function filterInputFiles(
  name: string,
  args: readonly Argument[],
  evalContext: EvalContext,
  end: NameTerminator,
): PipedFiles {
  const program = findProgram(name);
  if (program === undefined || end !== "line") return undefined;
  const { flags: found, operands, isUncertain: unsure } = parseOptions(args, program);
  const flags = splitWords(filterFlags[name]);
  const isFilter = !unsure && found.every((option) => flags.has(option.name) || /^-\d$/.test(option.name));
  return isFilter && operands.length === (program.skippedOperands ?? 0) ? evalContext.input(end) : undefined;
}

function listFilesBelow(
  scan: Scan,
  folders: readonly Argument[],
  evalContext: EvalContext,
  end: NameTerminator,
): PipedFiles {
  const starts = folders.length > 0 ? folders : [literalArgument(".")];
  return rejectOddNames(findFilesBelow(scan, starts, evalContext, anyEntry), end);
}

/** Returns undefined if a name would be split, changed or taken for an option when read from a pipe. */
function rejectOddNames(files: PipedFiles, end: NameTerminator): PipedFiles {
  const odd = end === "nul" ? /\/-/ : /[\s'"\\]|\/-/;
  const isOdd = (name: string) => odd.test(name);
  return files?.some(({ names }) => names?.some(isOdd)) === true ? undefined : files;
}

interface EntryFilter {
  fits(name: string): boolean;
  /** Maximum depth in folders. */
  depth: number;
}

function findFilesBelow(
  scan: Scan,
  starts: readonly Argument[],
  evalContext: EvalContext,
  wanted: EntryFilter,
): PipedFiles {
  if (scan.areListingsStale) return undefined;
  const folders = starts.flatMap((start) => {
    const text = knownText(start);
    const isPlain = text !== undefined && !text.startsWith("-") && start.values?.[0]?.glob === false;
    return (evalContext.workingDirs ?? []).map((base) => (isPlain ? scan.realPath(base, text) : undefined));
  });
  const found: Value[] = [];
  for (const folder of folders) {
    const names =
      folder === undefined || /[*?]/.test(folder) ? undefined : listEntriesBelow(scan, folder, wanted);
    if (names === undefined) return undefined;
    if (names.length > 0) found.push({ text: `${folder}/*`, glob: true, names });
  }
  return folders.length === 0 ? undefined : found;
}

/** Lists the start folder, which always matches, and the entries below it. Links are listed, not followed. */
function listEntriesBelow(scan: Scan, folder: string, wanted: EntryFilter): string[] | undefined {
  const { context } = scan;
  if (context.list === undefined) return undefined;
  const found: string[] = [];
  let level = [folder];
  for (let deep = 0; level.length > 0 && deep < wanted.depth; deep++) {
    const next: string[] = [];
    for (const path of level) {
      if (scan.realPath("/", path) !== path) continue;
      for (const name of context.list(path)) next.push(`${path}/${name}`);
      if (found.length + next.length > entriesLimit) return undefined;
    }
    found.push(...next);
    level = next;
  }
  return [folder, ...found.filter((path) => wanted.fits(basename(path)))];
}

const anyEntry: EntryFilter = { fits: () => true, depth: Number.POSITIVE_INFINITY };

/** Creates the filter of the tests before an action; accepts everything if they contain `-o`, `!` or brackets. */
function createEntryFilter(tests: readonly Argument[], action: number): EntryFilter {
  if (tests.some(({ text }) => /^(?:-o|-or|,|!|-not|[()])$/.test(text))) return anyEntry;
  const before = parseFindTests(action === -1 ? tests : tests.slice(0, action));
  // Applies to the whole search wherever it is, and the last one wins.
  const depths = tests.filter(({ text }) => text === "-maxdepth");
  const depth = depths.length === 1 ? before?.get("-maxdepth")?.[0] : undefined;
  const known = (before?.get("-name") ?? []).filter((pattern) => !/[[\\]/.test(pattern));
  return {
    fits: (name) => known.every((pattern) => matchesWildcards(pattern, name)),
    depth: depth !== undefined && /^\d+$/.test(depth) ? Number(depth) : anyEntry.depth,
  };
}

const testsWithValue =
  /^-(?:name|iname|path|ipath|type|size|maxdepth|mindepth|newer|[acm](?:time|min|newer)|perm|user|group)$/;
const testsWithoutValue =
  /^-(?:a|and|true|empty|mount|xdev|depth|daystart|readable|writable|executable|print0?|prune)$/;

/** Returns the values of each test by its name; undefined if a word is not a known test. */
function parseFindTests(words: readonly Argument[]): ReadonlyMap<string, readonly string[]> | undefined {
  const found = new Map<string, string[]>();
  for (let at = 0; at < words.length; at++) {
    const name = words[at]?.text ?? "";
    if (testsWithValue.test(name)) {
      at++;
      found.set(name, [...(found.get(name) ?? []), words[at]?.text ?? ""]);
    } else if (!testsWithoutValue.test(name)) return undefined;
  }
  return found;
}
