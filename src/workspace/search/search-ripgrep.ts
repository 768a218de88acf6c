import { toSlashes } from "../../base/files/paths.ts";
import { type ChildProcess, spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { sep } from "node:path";
import { messageOf } from "../../base/errors.ts";
import type { PathFilter } from "./glob.ts";
import {
  hasUnusualRulesAbove,
  hasUnusualRulesBelow,
  UnusualIgnoreRulesError,
} from "./unusual-ignore-rules.ts";
import {
  type FileLine,
  type Matches,
  MAX_FILE_BYTES,
  MAX_FILES,
  type SearchEngine,
} from "./search-engine.ts";
import { type Environment, findProgram, isExecutable } from "../process/find-program.ts";
import type { Watchdog } from "../process/watchdog.ts";
import { findWorktree } from "../worktree.ts";

/** Maximum size of a record in memory. */
const RECORD_LIMIT_BYTES = 256 * 1024;
const ERROR_LIMIT_CHARACTERS = 4_096;
const DEBUG_LINE = "rg: DEBUG|";
/** Time after which a running search is guarded and checked. */
const SLOW_SEARCH_MS = 300;
/** Maximum characters of matching lines fetched in one run. */
const MAX_CHARACTERS_AT_ONCE = 256 * 1024;
/** Short enough for the command line of any system, with 200 paths. */
const PATHS_PER_RUN = 200;

const SAME_FILES = ["--no-config", "--hidden", "--no-ignore-global", "--no-messages", "--glob", "!.git"];
const CONTENTS = [...SAME_FILES, "--color=never", `--max-filesize=${MAX_FILE_BYTES}`];
/** Globs are compared with paths that have `/`, on Windows too. */
const SLASHES = "--path-separator=/";
/** Only debug output names files that are too large. */
const FOLDER_CONTENTS = [...CONTENTS, SLASHES, "--debug"];
/**
 * Lines are truncated where 2,000 characters are certain. JSON output would list each match of a line,
 * possibly millions.
 */
const LINES_ONLY =
  "--with-filename --null --no-heading --line-number --max-columns=8000 --max-columns-preview";
/** PCRE2 is used only where needed, such as for lookahead. */
const EXPRESSION = ["--engine=auto", "--crlf", "--no-mmap"];

export function ripgrepEngine(program: string, watchdog: Watchdog | undefined): SearchEngine {
  const records = (run: RipgrepRun) => readRecords(program, run, watchdog);
  return {
    async *files(folder, signal) {
      yield* records({
        args: [
          ...SAME_FILES,
          SLASHES,
          "--color=never",
          ...(await getFlagsOutsideGit(folder)),
          "--files",
          "--null",
        ],
        cwd: folder,
        end: 0,
        signal,
      });
    },

    async filesWithMatch({ folder, pattern, glob, filter, onLarge, onFound, signal }) {
      const search = [
        ...EXPRESSION,
        ...typeOf(glob),
        "--files-with-matches",
        "--null",
        `--regexp=${pattern}`,
      ];
      const args = [...FOLDER_CONTENTS, ...(await getFlagsOutsideGit(folder)), ...search];
      const found: string[] = [];
      const run = {
        args,
        cwd: folder,
        end: 0,
        signal,
        pattern,
        onLarge: createFilteredCallback(onLarge, filter),
      };
      for await (const path of records(run)) {
        if (filter(path)) found.push(path);
        if (found.length === MAX_FILES) break;
        onFound(found.length);
      }
      return found;
    },

    async fewMatches({ folder, pattern, glob, filter, limit, onLarge, onFound, signal }) {
      const search = [...EXPRESSION, ...typeOf(glob), ...createLineFlags(pattern, limit)];
      const args = [...FOLDER_CONTENTS, ...(await getFlagsOutsideGit(folder)), ...search];
      const found: Matches = new Map();
      let left = MAX_CHARACTERS_AT_ONCE;
      const run = {
        args,
        cwd: folder,
        end: 10,
        signal,
        pattern,
        onLarge: createFilteredCallback(onLarge, filter),
      };
      for await (const record of records(run)) {
        const match = toMatch(record);
        left -= record.length;
        // A message about a binary file, or part of a name with a line feed.
        if (match === undefined || left < 0) return undefined;
        if (!filter(match.path)) continue;
        add(match, match.path, found);
        onFound(found.size);
      }
      return found;
    },

    async matches({ paths, pattern, limit, signal }) {
      const found: Matches = new Map();
      const search = [...CONTENTS, ...EXPRESSION, ...createLineFlags(pattern, limit)];
      for (const some of splitIntoRuns(paths)) {
        const args = [...search, "--", ...some];
        for await (const line of records({ args, cwd: undefined, end: 10, signal, pattern }))
          collectMatch(line, found, some);
      }
      return found;
    },
  };
}

const createFilteredCallback =
  (callback: (path: string) => void, filter: PathFilter) =>
  (path: string): void => {
    if (filter(toSlashes(path))) callback(path);
  };

const typeOf = (glob: string | undefined): string[] =>
  glob === undefined ? [] : ["--type-add", `wanted:${glob}`, "--type", "wanted"];

const createLineFlags = (pattern: string, limit: number): string[] => [
  ...LINES_ONLY.split(" "),
  `--max-count=${limit}`,
  `--regexp=${pattern}`,
];

/**
 * Outside git, .gitignore files apply, but not those of parent folders: a home folder's may exclude
 * everything.
 */
async function getFlagsOutsideGit(folder: string): Promise<string[]> {
  return (await findWorktree(folder)) === undefined ? ["--no-require-git", "--no-ignore-parent"] : [];
}

/** Finds the bundled ripgrep, or one on the PATH. */
export async function findRipgrep(env: Environment): Promise<string | undefined> {
  const bundled = await bundledRipgrep();
  return bundled !== undefined && (await isExecutable(bundled)) ? bundled : findProgram("rg", env);
}

async function bundledRipgrep(): Promise<string | undefined> {
  try {
    return (await import("@vscode/ripgrep")).rgPath;
  } catch {
    // Throws if its package for this platform is not installed.
    return undefined;
  }
}

/** A name with a line feed looks like two records, so such a file gets its own run. */
function splitIntoRuns(paths: readonly string[]): (readonly string[])[] {
  const plain = paths.filter((path) => !path.includes("\n"));
  const withLineFeed = paths.filter((path) => path.includes("\n"));
  const count = Math.ceil(plain.length / PATHS_PER_RUN);
  const parts = Array.from({ length: count }, (_, at) =>
    plain.slice(at * PATHS_PER_RUN, (at + 1) * PATHS_PER_RUN),
  );
  return [...parts, ...withLineFeed.map((path) => [path])];
}

/** Adds a matching line. Messages about binary files are ignored. */
function collectMatch(record: string, found: Matches, paths: readonly string[]): void {
  const [only = "", ...others] = paths;
  const match = toMatch(record);
  if (match !== undefined) return add(match, others.length === 0 ? only : match.path, found);
  const binary = paths.find((path) => record.startsWith(`${path}: binary file matches`));
  if (binary !== undefined) found.delete(binary);
}

/** Parses `path NUL line:text`; undefined for anything else. */
function toMatch(record: string): (FileLine & { path: string }) | undefined {
  const nul = record.indexOf("\0");
  const [, line, text = ""] = /^(\d+):(.*)$/s.exec(record.slice(nul + 1)) ?? [];
  if (nul === -1 || line === undefined) return undefined;
  return { path: record.slice(0, nul), line: Number(line), text: text.replace(/\r$/, "") };
}

function add({ line, text }: FileLine, path: string, found: Matches): void {
  const lines = found.get(path) ?? [];
  lines.push({ line, text });
  found.set(path, lines);
}

interface RipgrepRun {
  args: string[];
  cwd: string | undefined;
  /** Byte that ends a record. */
  end: number;
  signal: AbortSignal;
  pattern?: string;
  onLarge?: (path: string) => void;
}

/** Yields ripgrep's output by record. Ends ripgrep when the reader stops or the signal aborts. */
async function* readRecords(
  program: string,
  { args, cwd, end, signal, pattern, onLarge }: RipgrepRun,
  watchdog: Watchdog | undefined,
): AsyncGenerator<string> {
  signal.throwIfAborted();
  if (cwd !== undefined && hasUnusualRulesAbove(cwd)) throw new UnusualIgnoreRulesError();
  const child = spawn(program, args, {
    cwd,
    stdio: ["ignore", "pipe", "pipe"],
    // Without credentials and in its own group, as the watchdog requires; on Windows this would open a
    // window.
    ...(process.platform !== "win32" && { env: {}, detached: true }),
    windowsHide: true,
    signal,
  });
  const ended = new Promise<number | null>((resolve, reject) =>
    child.once("close", resolve).once("error", reject),
  );
  // The exit is handled below, unless the reader stopped early.
  ended.catch(() => {});
  // If no file can be opened, there are no pipes.
  if (child.pid === undefined) await ended.catch(throwCannotStart);
  child.stderr.on("error", () => {});
  const care = guardSlowSearch(child, cwd, watchdog);
  let problem = "";
  const errors = createInterface({ input: child.stderr }).on("line", (line) => {
    const large = parseLargeFile(line);
    if (large !== undefined) onLarge?.(large);
    else if (!line.startsWith(DEBUG_LINE) && problem.length < ERROR_LIMIT_CHARACTERS) problem += `${line}\n`;
  });
  try {
    yield* split(child.stdout, end);
    const code = await ended;
    if (care.isOdd) throw new UnusualIgnoreRulesError();
    if (code === 2 && problem.trim() !== "") throw new Error(describeSearchError(problem, pattern));
  } catch (error) {
    signal.throwIfAborted();
    throw error;
  } finally {
    care.stop();
    errors.close();
    child.kill("SIGKILL");
  }
}

/** Parses the path in a line such as `rg: DEBUG|ignore::walk|walk.rs:1: ignoring ./a.log: 70000000 bytes`. */
function parseLargeFile(line: string): string | undefined {
  if (!line.startsWith(`${DEBUG_LINE}ignore::walk|`)) return undefined;
  return /: ignoring (?:\.\/)?(.+): \d+ bytes$/.exec(line)?.[1]?.replaceAll(sep, "/");
}

function throwCannotStart(error: unknown): never {
  throw new Error(`ripgrep could not be started: ${messageOf(error)}`, { cause: error });
}

/**
 * Guards a slow search by the watchdog, and checks whether it is blocked by an ignore file. Most searches end
 * before.
 */
function guardSlowSearch(
  child: ChildProcess,
  folder: string | undefined,
  watchdog: Watchdog | undefined,
): { readonly isOdd: boolean; stop(): void } {
  const stopped = new AbortController();
  const care = { isOdd: false, stop };
  let guarded: number | undefined;
  const timer = setTimeout(() => void check(), SLOW_SEARCH_MS);
  return care;

  async function check(): Promise<void> {
    guarded = child.pid;
    if (guarded !== undefined) watchdog?.guard(guarded);
    care.isOdd = folder !== undefined && (await hasUnusualRulesBelow(folder, stopped.signal));
    if (care.isOdd) child.kill("SIGKILL");
  }
  function stop(): void {
    clearTimeout(timer);
    stopped.abort();
    if (guarded !== undefined) watchdog?.forget(guarded);
  }
}

async function* split(chunks: AsyncIterable<Buffer>, end: number): AsyncGenerator<string> {
  let pending: Buffer[] = [];
  let heldBytes = 0;
  for await (const chunk of chunks) {
    let start = 0;
    for (let at = chunk.indexOf(end); at !== -1; at = chunk.indexOf(end, start)) {
      const last = chunk.subarray(start, at);
      if (heldBytes <= RECORD_LIMIT_BYTES)
        yield heldBytes === 0 ? last.toString() : Buffer.concat([...pending, last]).toString();
      pending = [];
      heldBytes = 0;
      start = at + 1;
    }
    heldBytes += chunk.length - start;
    if (heldBytes <= RECORD_LIMIT_BYTES) pending.push(chunk.subarray(start));
    else pending = [];
  }
  if (heldBytes > 0 && heldBytes <= RECORD_LIMIT_BYTES) yield Buffer.concat(pending).toString();
}

/** Explains ripgrep's error about an expression, without its drawing. */
function describeSearchError(problem: string, pattern: string | undefined): string {
  const why = /^error: (.+)$/m.exec(problem)?.[1] ?? /^rg: (.+)$/m.exec(problem)?.[1] ?? problem.trim();
  if (pattern === undefined) return `ripgrep could not search: ${why}`;
  return `The regular expression ${JSON.stringify(pattern)} is not valid: ${why}`;
}
