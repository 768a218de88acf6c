/** Finds files and lines in a folder, honoring .gitignore. Uses ripgrep if available, else JavaScript. */
export interface Search {
  files(query: FilesQuery): Promise<{ paths: string[]; truncated: boolean }>;
  lines(query: LinesQuery): Promise<FoundLines>;
  /** Prepares the first search. */
  warmUp(): Promise<void>;
}

export interface FilesQuery {
  /** Real path. */
  folder: string;
  /** Globs in ripgrep's syntax; empty means all files. */
  globs: readonly string[];
  limit: number;
  /** By modification time, newest first, or by path. */
  order: "newest" | "path";
  onProgress?: OnProgress;
  signal: AbortSignal;
}

/** Called once a second during a search with the number of files found so far. */
export type OnProgress = (files: number) => void;

export interface LinesQuery {
  folder: string;
  /** A regular expression. An invalid one throws an Error that quotes the problem. */
  pattern: string;
  include?: string;
  limit: number;
  /** Whether lines of a file may be shown, by absolute path; default all. */
  isShown?: (path: string) => boolean;
  onProgress?: OnProgress;
  signal: AbortSignal;
}

export interface FoundLines {
  matches: LineMatch[];
  truncated: boolean;
  /** Absolute paths of files that were too large to search. */
  large: string[];
}

export interface LineMatch {
  /** Absolute path. */
  path: string;
  /** Counts from 1. */
  line: number;
  /** The whole line, truncated to 2,000 characters. */
  text: string;
}
