import type { Log } from "../../base/log.ts";

/** Changes are forgotten after this time. */
export const recentMs = 10 * 60_000;

/** A session or a task that changes files. */
export interface Author {
  readonly id: string;
  readonly title?: string | undefined;
  readonly isTask: boolean;
}

/** The newest change of a file by one author. */
export interface RecentChange {
  /** Absolute real path. */
  readonly path: string;
  /** SHA-256 of the new content; null if the file was removed, undefined if unknown. */
  readonly after?: string | null | undefined;
  /** Milliseconds since 1970. */
  readonly time: number;
  readonly author: Author;
}

/** Changes of the last minutes by all sessions, of this process and others. */
export interface RecentChanges {
  /** Returns the changes as one author makes and sees them. */
  openFor(author: () => Author): AuthorChanges;
}

/** The changes as one author makes and sees them. Nothing rejects. */
export interface AuthorChanges {
  /** Notes own changes, for others. */
  note(changes: readonly Pick<RecentChange, "path" | "after">[]): Promise<void>;
  /** Returns the changes by other authors, newest first. */
  list(): Promise<RecentChange[]>;
  /** Returns the newest change of the file by another author. */
  find(path: string): Promise<RecentChange | undefined>;
  /** Returns each other author's changes since this author began, newest first, once. */
  takeNews(): Promise<RecentChange[]>;
}

export interface RecentChangesOptions {
  /** Shared by all processes. */
  readonly folder: string;
  /** False if other processes must not learn of this one's changes. */
  readonly isShared: boolean;
  readonly log: Log;
}
