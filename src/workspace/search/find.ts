import { statSync } from "node:fs";
import { stat } from "node:fs/promises";
import { join } from "node:path";
import { toSlashes } from "../../base/files/paths.ts";
import { toPathFilter } from "./glob.ts";
import type { FilesQuery, LineMatch, LinesQuery, OnProgress, Search } from "./queries.ts";
import { type Matches, MAX_FILE_BYTES, MAX_FILES, type SearchEngine } from "./search-engine.ts";

const LINE_LIMIT_CHARACTERS = 2_000;
/** Reading the times of many files yields to other work after this long. */
const STAT_SLICE_MS = 5;
/** Files whose lines are fetched at once. Each has a match, unless it is binary. */
const FILES_AT_ONCE = 50;

/** Finds the files that match the globs. */
export async function findFiles(
  engine: SearchEngine,
  query: FilesQuery,
  progressMs: number,
): ReturnType<Search["files"]> {
  const isWanted = toPathFilter(query.globs, query.folder);
  const found: string[] = [];
  const tell = createProgress(query.onProgress, progressMs);
  for await (const path of engine.files(query.folder, query.signal)) {
    if (isWanted(path)) found.push(path);
    if (found.length === MAX_FILES) break;
    tell(found.length);
  }
  const paths =
    query.order === "newest"
      ? await sortNewestFirst(query.folder, found, query.signal)
      : found.sort(compareByPath);
  return {
    paths: paths.slice(0, query.limit).map((path) => join(query.folder, path)),
    truncated: paths.length > query.limit || paths.length === MAX_FILES,
  };
}

/** Finds the lines that match, in the newest files first. */
export async function findLines(
  engine: SearchEngine,
  query: LinesQuery,
  progressMs: number,
): ReturnType<Search["lines"]> {
  const { isShown = () => true, pattern, signal } = query;
  const limit = query.limit + 1;
  const { paths, known, large = [] } = await findFilesWithMatch(engine, query, limit, progressMs);
  const matches: LineMatch[] = [];
  for (let start = 0; start < paths.length && matches.length < limit; start += FILES_AT_ONCE) {
    const some = paths.slice(start, start + FILES_AT_ONCE).filter(isShown);
    const found = known ?? (await engine.matches({ paths: some, pattern, limit, signal }));
    for (const path of some)
      for (const { line, text } of found.get(path) ?? []) matches.push({ path, line, text: truncate(text) });
  }
  return { matches: matches.slice(0, query.limit), truncated: matches.length > query.limit, large };
}

/**
 * Files with a match, newest first, with their lines if already known. A query for one file searches only
 * that file.
 */
async function findFilesWithMatch(
  engine: SearchEngine,
  query: LinesQuery,
  limit: number,
  progressMs: number,
): Promise<{ paths: string[]; known?: Matches; large?: string[] }> {
  const { folder, pattern, include, signal } = query;
  const stats = await stat(folder);
  if (stats.size > MAX_FILE_BYTES && stats.isFile())
    throw new Error(`${folder} has ${stats.size} bytes; the limit for searches is ${MAX_FILE_BYTES} bytes.`);
  if (stats.isFile()) return { paths: [folder] };
  const filter = toPathFilter(include === undefined ? [] : [include], folder);
  const onFound = createProgress(query.onProgress, progressMs);
  const large = new Set<string>();
  const onLarge = (path: string) => {
    if (large.size < MAX_FILES) large.add(join(folder, path));
  };
  const wanted = { folder, pattern, glob: getNameGlob(include), filter, onLarge, onFound, signal };
  const few = await engine.fewMatches?.({ ...wanted, limit });
  const matching = few === undefined ? await engine.filesWithMatch(wanted) : [...few.keys()];
  const paths = (await sortNewestFirst(folder, matching, signal)).map((path) => join(folder, path));
  const found = { paths, large: [...large].sort(compareByPath) };
  if (few === undefined) return found;
  return { ...found, known: new Map([...few].map(([path, lines]) => [join(folder, path), lines])) };
}

/** Limits calls to one per interval, measured from the end of the previous one. */
function createProgress(onProgress: OnProgress | undefined, intervalMs: number): (files: number) => void {
  let next = performance.now() + intervalMs;
  return (files) => {
    if (onProgress === undefined || performance.now() < next) return;
    next = performance.now() + intervalMs;
    onProgress(files);
  };
}

/** The part of a glob that matches names only, if there is one. */
function getNameGlob(include: string | undefined): string | undefined {
  const name = include === undefined ? undefined : toSlashes(include).split("/").at(-1);
  if (!name || include?.startsWith("!") || name.includes("**")) return undefined;
  return /^[\w*?.-]*(?:\{[\w*?.,-]*\}[\w*?.-]*)?$/.test(name) ? name : undefined;
}

async function sortNewestFirst(
  folder: string,
  paths: readonly string[],
  signal: AbortSignal,
): Promise<string[]> {
  const dated: { path: string; time: number }[] = [];
  let sliceEnd = performance.now() + STAT_SLICE_MS;
  for (const path of paths) {
    if (performance.now() > sliceEnd) {
      await new Promise((resolve) => setImmediate(resolve));
      signal.throwIfAborted();
      sliceEnd = performance.now() + STAT_SLICE_MS;
    }
    dated.push({ path, time: getModificationTime(join(folder, path)) });
  }
  return dated
    .sort((one, two) => two.time - one.time || compareByPath(one.path, two.path))
    .map(({ path }) => path);
}

/** Milliseconds since 1970, 0 if the file is gone. Takes 2 µs; the asynchronous call takes ten times as long. */
function getModificationTime(path: string): number {
  try {
    return statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0;
  } catch {
    return 0;
  }
}

function compareByPath(one: string, two: string): number {
  return one < two ? -1 : Number(one > two);
}

function truncate(text: string): string {
  return text.length > LINE_LIMIT_CHARACTERS ? text.slice(0, LINE_LIMIT_CHARACTERS) : text;
}
