import type { FileVersion } from "./file-state.ts";

/** Finds what commands change in the files of a workspace, except ignored files. */
export interface ChangeTracker {
  /**
   * Call before a command. Never rejects.
   * - `roots`: real paths of the workspace's folders.
   * - `named`: absolute paths that the command is known to write; these are tracked also if they are ignored.
   */
  start(roots: readonly string[], named: readonly string[]): Promise<TrackedCommand>;
}

export interface TrackedCommand {
  /** Call once, after the command. Never rejects. */
  finish(): Promise<CommandChanges>;
}

export interface CommandChanges {
  /** Sorted by path. */
  readonly files: readonly ChangedFile[];
  /** What cannot be undone, one sentence each, for the user. */
  readonly notes: readonly string[];
}

/** A file that differs before and after a command; null where there was none. */
export interface ChangedFile {
  readonly path: string;
  readonly before: FileVersion | null;
  readonly after: FileVersion | null;
}
