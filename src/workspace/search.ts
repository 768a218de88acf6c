/** Finds files and lines under a folder, .gitignore honoured, with ripgrep where there is one and without where not. */
export interface Search {
  files(query: FilesQuery): Promise<{ paths: string[]; truncated: boolean }>;
  lines(query: LinesQuery): Promise<{ matches: LineMatch[]; truncated: boolean }>;
}

export interface FilesQuery {
  /** Absolute real path. */
  folder: string;
  /** Globs as ripgrep understands them; none means all files. */
  globs: readonly string[];
  limit: number;
  /** Newest first by modification time, or in the order of their paths. */
  order: "newest" | "path";
  signal: AbortSignal;
}

export interface LinesQuery {
  folder: string;
  /** A regular expression. Throws an Error that quotes what is wrong with it. */
  pattern: string;
  include?: string;
  limit: number;
  signal: AbortSignal;
}

export interface LineMatch {
  /** Absolute path. */
  path: string;
  /** Counts from 1. */
  line: number;
  /** The whole line, cut at 2,000 characters. */
  text: string;
}
