import type { FileVersion } from "./file-state.ts";

/** Finds what commands change in the files of a workspace, except ignored files. */
export interface ChangeTracker {
  /**
   * Call before a command. Never rejects.
   * - `roots`: real paths of the workspace's folders.
   * - `named`: what the command is known to write; tracked also if it is ignored.
   */
  start(roots: readonly string[], named: readonly NamedPath[]): Promise<TrackedCommand>;
  /** Call after a write of a tool: commands that run at the same time do not report it as their change. */
  acknowledge(path: string, write: FileWrite): void;
}

export interface FileWrite {
  /** Hash of the content before; null where there was no file. */
  readonly before: string | null;
  /** Content after; null if the file was removed. */
  readonly after: Buffer | null;
}

/** An absolute path that a command line names. */
export interface NamedPath {
  readonly path: string;
  /** `path` is a wildcard pattern. */
  readonly isGlob: boolean;
  /** Everything below the path is written too. */
  readonly isBelow: boolean;
}

export interface TrackedCommand {
  /** Call once, after the command. Never rejects. */
  finish(): Promise<CommandChanges>;
}

export interface CommandChanges {
  /** Sorted by path. */
  readonly files: readonly ChangedFile[];
  /** Changes that cannot be undone, one sentence each, for the user. */
  readonly notes: readonly string[];
}

/** A file that differs before and after a command; null where there was none. */
export interface ChangedFile {
  readonly path: string;
  readonly before: FileVersion | null;
  readonly after: FileVersion | null;
}
