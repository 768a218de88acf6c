import { statSync } from "node:fs";
import { stat } from "node:fs/promises";
import { join } from "node:path";
import { once } from "../../base/async.ts";
import { OddRules } from "./unusual-ignore-rules.ts";
import { type Matches, MOST_FILE_BYTES, MOST_FILES, type SearchEngine } from "./search-engine.ts";
import type { Watchdog } from "../process/watchdog.ts";

/** Finds files and lines under a folder, .gitignore honoured, with ripgrep where there is one and without where not. */
export interface Search {
  files(query: FilesQuery): Promise<{ paths: string[]; truncated: boolean }>;
  lines(query: LinesQuery): Promise<FoundLines>;
  /** Loads what a first search needs. */
  warmUp(): Promise<void>;
}

export interface FilesQuery {
  /** Absolute real path. */
  folder: string;
  /** Globs as ripgrep understands them; none means all files. */
  globs: readonly string[];
  limit: number;
  /** Newest first by modification time, or in the order of their paths. */
  order: "newest" | "path";
  onProgress?: OnProgress;
  signal: AbortSignal;
}

/** Told once a second, while a search goes on, how many files were found so far. */
export type OnProgress = (files: number) => Promise<void>;

export interface LinesQuery {
  folder: string;
  /** A regular expression. Throws an Error that quotes what is wrong with it. */
  pattern: string;
  include?: string;
  limit: number;
  /** Whether the lines of a file, given by its absolute path, may be shown; all unless given. */
  isShown?: (path: string) => boolean;
  onProgress?: OnProgress;
  signal: AbortSignal;
}

export interface FoundLines {
  matches: LineMatch[];
  truncated: boolean;
  /** Absolute paths of files that were not searched because of their size. */
  large: string[];
}

export interface LineMatch {
  /** Absolute path. */
  path: string;
  /** Counts from 1. */
  line: number;
  /** The whole line, cut at 2,000 characters. */
  text: string;
}

export interface SearchOptions {
  env: Readonly<Record<string, string | undefined>>;
  engine?: "ripgrep" | "javascript" | "auto";
  /** Ends searches that still run when the program is killed. */
  watchdog?: Watchdog;
  /** Between two words about a search that goes on; a second unless given. */
  progressMs?: number;
}

const LINE_LIMIT_CHARACTERS = 2_000;
/** Asking for the times of many files makes room for others after this long. */
const STAT_SLICE_MS = 5;
/** Files whose lines are fetched at once: each has a match, unless it is binary. */
const FILES_AT_ONCE = 50;

/**
 * `engine` is for tests: by itself it takes the ripgrep that came with us, else one on the PATH of `env`, else
 * searches in JavaScript. The engines see the same files and lines; their expressions differ in fine points such as
 * what `\w` means beyond ASCII.
 */
export function openSearch(options: SearchOptions): Search {
  const engine = once(() => loadEngine(options));
  const { progressMs = 1_000 } = options;
  return {
    files: async (query) => withEngine(await engine(), (engine) => findFiles(engine, query, progressMs)),
    lines: async (query) => withEngine(await engine(), (engine) => findLines(engine, query, progressMs)),
    warmUp: async () => void (await Promise.all([engine(), loadGlob()])),
  };
}

const loadGlob = () => import("./glob.ts");

/** Where ripgrep cannot search, JavaScript can. */
async function withEngine<T>(engine: SearchEngine, search: (engine: SearchEngine) => Promise<T>): Promise<T> {
  try {
    return await search(engine);
  } catch (error) {
    if (!(error instanceof OddRules)) throw error;
    return search((await import("./search-javascript.ts")).javascriptEngine);
  }
}

async function loadEngine({ env, engine: wanted = "auto", watchdog }: SearchOptions): Promise<SearchEngine> {
  const { findRipgrep, ripgrepEngine } = await import("./search-ripgrep.ts");
  const program = wanted === "javascript" ? undefined : await findRipgrep(env);
  if (program !== undefined) return ripgrepEngine(program, watchdog);
  if (wanted === "ripgrep")
    throw new Error("There is no ripgrep here. Install it, or search with another engine.");
  return (await import("./search-javascript.ts")).javascriptEngine;
}

async function findFiles(
  engine: SearchEngine,
  query: FilesQuery,
  progressMs: number,
): ReturnType<Search["files"]> {
  const { toPathFilter } = await loadGlob();
  const isWanted = toPathFilter(query.globs, query.folder);
  const found: string[] = [];
  const tell = progress(query.onProgress, progressMs);
  for await (const path of engine.files(query.folder, query.signal)) {
    if (isWanted(path)) found.push(path);
    if (found.length === MOST_FILES) break;
    await tell(found.length);
  }
  const paths =
    query.order === "newest" ? await newestFirst(query.folder, found, query.signal) : found.sort(byPath);
  return {
    paths: paths.slice(0, query.limit).map((path) => join(query.folder, path)),
    truncated: paths.length > query.limit || paths.length === MOST_FILES,
  };
}

async function findLines(
  engine: SearchEngine,
  query: LinesQuery,
  progressMs: number,
): ReturnType<Search["lines"]> {
  const { isShown = () => true, pattern, signal } = query;
  const limit = query.limit + 1;
  const { paths, known, large = [] } = await filesWithMatch(engine, query, limit, progressMs);
  const matches: LineMatch[] = [];
  for (let start = 0; start < paths.length && matches.length < limit; start += FILES_AT_ONCE) {
    const some = paths.slice(start, start + FILES_AT_ONCE).filter(isShown);
    const found = known ?? (await engine.matches({ paths: some, pattern, limit, signal }));
    for (const path of some)
      for (const { line, text } of found.get(path) ?? []) matches.push({ path, line, text: cut(text) });
  }
  return { matches: matches.slice(0, query.limit), truncated: matches.length > query.limit, large };
}

/** Absolute paths, newest first, with their lines where these are known by then. A query for one file is asked of it alone. */
async function filesWithMatch(
  engine: SearchEngine,
  query: LinesQuery,
  limit: number,
  progressMs: number,
): Promise<{ paths: string[]; known?: Matches; large?: string[] }> {
  const { folder, pattern, include, signal } = query;
  const asked = await stat(folder);
  if (asked.size > MOST_FILE_BYTES && asked.isFile())
    throw new Error(
      `${folder} has ${asked.size} bytes; files of up to ${MOST_FILE_BYTES} bytes are searched.`,
    );
  if (asked.isFile()) return { paths: [folder] };
  const { toPathFilter } = await loadGlob();
  const filter = toPathFilter(include === undefined ? [] : [include], folder);
  const onFound = progress(query.onProgress, progressMs);
  const large = new Set<string>();
  const onLarge = (path: string) => {
    if (large.size < MOST_FILES) large.add(join(folder, path));
  };
  const wanted = { folder, pattern, glob: nameGlob(include), filter, onLarge, onFound, signal };
  const few = await engine.fewMatches?.({ ...wanted, limit });
  const matching = few === undefined ? await engine.filesWithMatch(wanted) : [...few.keys()];
  const paths = (await newestFirst(folder, matching, signal)).map((path) => join(folder, path));
  const found = { paths, large: [...large].sort(byPath) };
  if (few === undefined) return found;
  return { ...found, known: new Map([...few].map(([path, lines]) => [join(folder, path), lines])) };
}

/** Calls at most once in each interval, from the end of the first on. */
function progress(
  onProgress: OnProgress | undefined,
  intervalMs: number,
): (files: number) => Promise<void> | undefined {
  let next = performance.now() + intervalMs;
  return (files) => {
    if (onProgress === undefined || performance.now() < next) return undefined;
    next = performance.now() + intervalMs;
    return onProgress(files);
  };
}

/** The part of a glob that speaks of names alone, where that can be told. */
function nameGlob(include: string | undefined): string | undefined {
  const name = include?.split("/").at(-1);
  if (!name || include?.startsWith("!") || name.includes("**")) return undefined;
  return /^[\w*?.-]*(?:\{[\w*?.,-]*\}[\w*?.-]*)?$/.test(name) ? name : undefined;
}

async function newestFirst(folder: string, paths: readonly string[], signal: AbortSignal): Promise<string[]> {
  const dated: { path: string; time: number }[] = [];
  let sliceEnd = performance.now() + STAT_SLICE_MS;
  for (const path of paths) {
    if (performance.now() > sliceEnd) {
      await new Promise((resolve) => setImmediate(resolve));
      signal.throwIfAborted();
      sliceEnd = performance.now() + STAT_SLICE_MS;
    }
    dated.push({ path, time: changeTime(join(folder, path)) });
  }
  return dated.sort((one, two) => two.time - one.time || byPath(one.path, two.path)).map(({ path }) => path);
}

/** Milliseconds since 1970, 0 for what has just gone. A call of 2 µs; the asynchronous one takes ten times as long. */
function changeTime(path: string): number {
  try {
    return statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0;
  } catch {
    return 0;
  }
}

function byPath(one: string, two: string): number {
  return one < two ? -1 : Number(one > two);
}

function cut(text: string): string {
  return text.length > LINE_LIMIT_CHARACTERS ? text.slice(0, LINE_LIMIT_CHARACTERS) : text;
}
