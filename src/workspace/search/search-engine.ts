import type { PathFilter } from "./glob.ts";

/** Larger files are not searched. */
export const MOST_FILE_BYTES = 64 * 1024 * 1024;

/** Maximum number of files searched. */
export const MOST_FILES = 500_000;

/**
 * A search engine: ripgrep or JavaScript. Both see the same files: hidden ones too, not `.git`, not what
 * .gitignore, .ignore, .rgignore and .git/info/exclude exclude; no links. Outside git .gitignore counts from the
 * searched folder on. Personal excludes of git and settings of ripgrep do not count. Paths are with `/`.
 */
export interface SearchEngine {
  /** Paths of all files, relative to the folder. */
  files(folder: string, signal: AbortSignal): AsyncGenerator<string>;
  /** Those that hold a matching line. Some may turn out to be binary. */
  filesWithMatch(query: FolderQuery): Promise<string[]>;
  /**
   * Up to `limit` matching lines of each file, where that can be told at once and is not much; else undefined, and what
   * there is has to be asked file by file.
   */
  fewMatches?(query: FolderQuery & { limit: number }): Promise<Matches | undefined>;
  /** Up to `limit` matching lines of each of these files, given by absolute paths; of binary files none. */
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
  /** May spare work: the filter decides. */
  glob: string | undefined;
  filter: PathFilter;
  /** Told of each file that is not searched because it is larger than {@link MOST_FILE_BYTES}; perhaps twice. */
  onLarge: (path: string) => void;
  /** Told of each further file with how many there are. */
  onFound: (files: number) => Promise<void> | undefined;
  signal: AbortSignal;
}

export interface FileLine {
  line: number;
  text: string;
}

/** By path, as the files were asked for. */
export type Matches = Map<string, FileLine[]>;
