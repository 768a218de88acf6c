import { type ChildProcess, spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { sep } from "node:path";
import { messageOf } from "../../base/errors.ts";
import type { PathFilter } from "./glob.ts";
import { hasOddRulesAbove, hasOddRulesBelow, OddRules } from "./unusual-ignore-rules.ts";
import {
  type FileLine,
  type Matches,
  MOST_FILE_BYTES,
  MOST_FILES,
  type SearchEngine,
} from "./search-engine.ts";
import { type Environment, findProgram, isExecutable } from "../process/find-program.ts";
import type { Watchdog } from "../process/watchdog.ts";
import { findWorktree } from "../worktree.ts";

/** More than this of a single record is not taken into memory. */
const RECORD_LIMIT_BYTES = 256 * 1024;
const ERROR_LIMIT_CHARACTERS = 4_096;
const DEBUG_LINE = "rg: DEBUG|";
/** A search that runs longer than this is looked after. */
const LOOK_AFTER_MS = 300;
/** Found lines of so many characters are taken at once. */
const FEW_CHARACTERS = 256 * 1024;
/** Enough for 200 paths on a command line of any system. */
const PATHS_PER_RUN = 200;

const SAME_FILES = ["--no-config", "--hidden", "--no-ignore-global", "--no-messages", "--glob", "!.git"];
const CONTENTS = [...SAME_FILES, "--color=never", `--max-filesize=${MOST_FILE_BYTES}`];
/** Only debug output says which files are too large. */
const FOLDER_CONTENTS = [...CONTENTS, "--debug"];
/** A line is cut where 2,000 characters are certain. Its JSON tells of each match in a line, which may be millions. */
const LINES_ONLY =
  "--with-filename --null --no-heading --line-number --max-columns=8000 --max-columns-preview";
/** PCRE2 is used for what only it can do, such as looking ahead. */
const EXPRESSION = ["--engine=auto", "--crlf", "--no-mmap"];

export function ripgrepEngine(program: string, watchdog: Watchdog | undefined): SearchEngine {
  const records = (run: RipgrepRun) => recordsOf(program, run, watchdog);
  return {
    async *files(folder, signal) {
      yield* records({
        args: [...SAME_FILES, "--color=never", ...(await outsideGit(folder)), "--files", "--null"],
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
      const args = [...FOLDER_CONTENTS, ...(await outsideGit(folder)), ...search];
      const found: string[] = [];
      const run = { args, cwd: folder, end: 0, signal, pattern, onLarge: filtered(onLarge, filter) };
      for await (const path of records(run)) {
        if (filter(path)) found.push(path);
        if (found.length === MOST_FILES) break;
        await onFound(found.length);
      }
      return found;
    },

    async fewMatches({ folder, pattern, glob, filter, limit, onLarge, onFound, signal }) {
      const search = [...EXPRESSION, ...typeOf(glob), ...linesOf(pattern, limit)];
      const args = [...FOLDER_CONTENTS, ...(await outsideGit(folder)), ...search];
      const found: Matches = new Map();
      let room = FEW_CHARACTERS;
      const run = { args, cwd: folder, end: 10, signal, pattern, onLarge: filtered(onLarge, filter) };
      for await (const record of records(run)) {
        const match = toMatch(record);
        room -= record.length;
        // Words about a binary file, or half of a name that holds a line feed.
        if (match === undefined || room < 0) return undefined;
        if (!filter(match.path)) continue;
        add(match, match.path, found);
        await onFound(found.size);
      }
      return found;
    },

    async matches({ paths, pattern, limit, signal }) {
      const found: Matches = new Map();
      const search = [...CONTENTS, ...EXPRESSION, ...linesOf(pattern, limit)];
      for (const some of runs(paths)) {
        const args = [...search, "--", ...some];
        for await (const line of records({ args, cwd: undefined, end: 10, signal, pattern }))
          collect(line, found, some);
      }
      return found;
    },
  };
}

const filtered =
  (tell: (path: string) => void, filter: PathFilter) =>
  (path: string): void => {
    if (filter(path)) tell(path);
  };

const typeOf = (glob: string | undefined): string[] =>
  glob === undefined ? [] : ["--type-add", `wanted:${glob}`, "--type", "wanted"];

const linesOf = (pattern: string, limit: number): string[] => [
  ...LINES_ONLY.split(" "),
  `--max-count=${limit}`,
  `--regexp=${pattern}`,
];

/** There .gitignore counts too, but not those of folders above: a home folder's may exclude all there is. */
async function outsideGit(folder: string): Promise<string[]> {
  return (await findWorktree(folder)) === undefined ? ["--no-require-git", "--no-ignore-parent"] : [];
}

/** The program that came with us, else one on the PATH. */
export async function findRipgrep(env: Environment): Promise<string | undefined> {
  const bundled = await bundledRipgrep();
  return bundled !== undefined && (await isExecutable(bundled)) ? bundled : findProgram("rg", env);
}

async function bundledRipgrep(): Promise<string | undefined> {
  try {
    return (await import("@vscode/ripgrep")).rgPath;
  } catch {
    // It throws where its part for this platform is not installed.
    return undefined;
  }
}

/** A name with a line feed in it cannot be told from two records: such a file has a run of its own. */
function runs(paths: readonly string[]): (readonly string[])[] {
  const plain = paths.filter((path) => !path.includes("\n"));
  const odd = paths.filter((path) => path.includes("\n"));
  const count = Math.ceil(plain.length / PATHS_PER_RUN);
  const parts = Array.from({ length: count }, (_, at) =>
    plain.slice(at * PATHS_PER_RUN, (at + 1) * PATHS_PER_RUN),
  );
  return [...parts, ...odd.map((path) => [path])];
}

/** A line that was found in one of the files, or words about a binary one, which has no lines to show. */
function collect(record: string, found: Matches, paths: readonly string[]): void {
  const [only = "", ...others] = paths;
  const match = toMatch(record);
  if (match !== undefined) return add(match, others.length === 0 ? only : match.path, found);
  const binary = paths.find((path) => record.startsWith(`${path}: binary file matches`));
  if (binary !== undefined) found.delete(binary);
}

/** Of `path NUL line:text`; undefined for anything else. */
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
  /** The byte that ends a record. */
  end: number;
  signal: AbortSignal;
  pattern?: string;
  onLarge?: (path: string) => void;
}

/** What ripgrep prints, record by record. It is ended when the reader stops or the signal aborts. */
async function* recordsOf(
  program: string,
  { args, cwd, end, signal, pattern, onLarge }: RipgrepRun,
  watchdog: Watchdog | undefined,
): AsyncGenerator<string> {
  signal.throwIfAborted();
  if (cwd !== undefined && hasOddRulesAbove(cwd)) throw new OddRules();
  const child = spawn(program, args, {
    cwd,
    stdio: ["ignore", "pipe", "pipe"],
    // Without our keys, and in a group of its own, as the watchdog wants it; on Windows this would open a window.
    ...(process.platform !== "win32" && { env: {}, detached: true }),
    windowsHide: true,
    signal,
  });
  const ended = new Promise<number | null>((resolve, reject) =>
    child.once("close", resolve).once("error", reject),
  );
  // Whoever stopped reading has no use for how it ended; others hear it below.
  ended.catch(() => {});
  // Without a file left to open there are no pipes to read.
  if (child.pid === undefined) await ended.catch(cannotStart);
  child.stderr.on("error", () => {});
  const care = lookAfter(child, cwd, watchdog);
  let problem = "";
  const errors = createInterface({ input: child.stderr }).on("line", (line) => {
    const large = largeFile(line);
    if (large !== undefined) onLarge?.(large);
    else if (!line.startsWith(DEBUG_LINE) && problem.length < ERROR_LIMIT_CHARACTERS) problem += `${line}\n`;
  });
  try {
    yield* split(child.stdout, end);
    const code = await ended;
    if (care.isOdd) throw new OddRules();
    if (code === 2 && problem.trim() !== "") throw new Error(explain(problem, pattern));
  } catch (error) {
    signal.throwIfAborted();
    throw error;
  } finally {
    care.stop();
    errors.close();
    child.kill("SIGKILL");
  }
}

/** The path in a line such as `rg: DEBUG|ignore::walk|walk.rs:1: ignoring ./a.log: 70000000 bytes`. */
function largeFile(line: string): string | undefined {
  if (!line.startsWith(`${DEBUG_LINE}ignore::walk|`)) return undefined;
  return /: ignoring (?:\.\/)?(.+): \d+ bytes$/.exec(line)?.[1]?.replaceAll(sep, "/");
}

function cannotStart(error: unknown): never {
  throw new Error(`ripgrep could not be started: ${messageOf(error)}`, { cause: error });
}

/**
 * When a search takes long, has it ended with the program, however that ends, and looks whether it waits for a file of
 * rules. Most end before.
 */
function lookAfter(
  child: ChildProcess,
  folder: string | undefined,
  watchdog: Watchdog | undefined,
): { readonly isOdd: boolean; stop(): void } {
  const stopped = new AbortController();
  const care = { isOdd: false, stop };
  let guarded: number | undefined;
  const timer = setTimeout(() => void look(), LOOK_AFTER_MS);
  return care;

  async function look(): Promise<void> {
    guarded = child.pid;
    if (guarded !== undefined) watchdog?.guard(guarded);
    care.isOdd = folder !== undefined && (await hasOddRulesBelow(folder, stopped.signal));
    if (care.isOdd) child.kill("SIGKILL");
  }
  function stop(): void {
    clearTimeout(timer);
    stopped.abort();
    if (guarded !== undefined) watchdog?.forget(guarded);
  }
}

async function* split(chunks: AsyncIterable<Buffer>, end: number): AsyncGenerator<string> {
  let held: Buffer[] = [];
  let heldBytes = 0;
  for await (const chunk of chunks) {
    let start = 0;
    for (let at = chunk.indexOf(end); at !== -1; at = chunk.indexOf(end, start)) {
      const last = chunk.subarray(start, at);
      if (heldBytes <= RECORD_LIMIT_BYTES)
        yield heldBytes === 0 ? last.toString() : Buffer.concat([...held, last]).toString();
      held = [];
      heldBytes = 0;
      start = at + 1;
    }
    heldBytes += chunk.length - start;
    if (heldBytes <= RECORD_LIMIT_BYTES) held.push(chunk.subarray(start));
    else held = [];
  }
  if (heldBytes > 0 && heldBytes <= RECORD_LIMIT_BYTES) yield Buffer.concat(held).toString();
}

/** ripgrep's own words about an expression, without its drawing. */
function explain(problem: string, pattern: string | undefined): string {
  const why = /^error: (.+)$/m.exec(problem)?.[1] ?? /^rg: (.+)$/m.exec(problem)?.[1] ?? problem.trim();
  if (pattern === undefined) return `ripgrep could not search: ${why}`;
  return `The regular expression ${JSON.stringify(pattern)} is not valid: ${why}`;
}
