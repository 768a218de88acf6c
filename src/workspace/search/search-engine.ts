import type { PathFilter } from "./glob.ts";

/** Larger files are not searched. */
export const MAX_FILE_BYTES = 64 * 1024 * 1024;

export const MAX_FILES = 500_000;

/**
 * A search engine: ripgrep or JavaScript. Both see the same files: also hidden ones, but not `.git`, links,
 * or files excluded by .gitignore, .ignore, .rgignore and .git/info/exclude. Outside git, .gitignore applies
 * from the searched folder down. Global git excludes and ripgrep settings are ignored. Paths use `/`.
 */
export interface SearchEngine {
  /** Paths of all files, relative to the folder. */
  files(folder: string, signal: AbortSignal): AsyncGenerator<string>;
  /** Files with a matching line. Some may turn out to be binary. */
  filesWithMatch(query: FolderQuery): Promise<string[]>;
  /**
   * Up to `limit` matching lines per file, if a single run finds few lines; undefined if files must be
   * queried one by one.
   */
  fewMatches?(query: FolderQuery & { limit: number }): Promise<Matches | undefined>;
  /** Up to `limit` matching lines of each of these files, by absolute path. Binary files have none. */
  matches(query: {
    paths: readonly string[];
    pattern: string;
    limit: number;
    signal: AbortSignal;
  }): Promise<Matches>;
}

export interface FolderQuery {
  folder: string;
  pattern: string;
  /** An optimization only; the filter decides. */
  glob: string | undefined;
  filter: PathFilter;
  /** Called for each file larger than {@link MAX_FILE_BYTES}, possibly twice. */
  onLarge: (path: string) => void;
  /** Called for each further file with the current number. */
  onFound: (files: number) => void;
  signal: AbortSignal;
}

export interface FileLine {
  line: number;
  text: string;
}

/** By path, as given in the query. */
export type Matches = Map<string, FileLine[]>;
