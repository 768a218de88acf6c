import type { ChangeTracker } from "./changes/command-changes.ts";
import type { Files } from "./files/files.ts";
import type { Processes } from "./process/process.ts";
import type { Search } from "./search/queries.ts";
import type { Snapshots } from "./files/snapshot.ts";

/** Folders of a session, with access to its files and processes. */
export interface Workspace {
  /** Real path of the session's working directory. */
  readonly cwd: string;
  /** Real paths of `cwd` and the additional directories. All other paths are external. */
  readonly roots: readonly string[];
  /** Root of the git worktree that contains `cwd`; undefined outside git. */
  readonly worktree: string | undefined;
  /** The root of the checkout from which `worktree` was made for the session or its task; undefined elsewhere. */
  readonly checkout?: string | undefined;
  readonly home: string;
  /** Folder in which truncated outputs are stored for 7 days. */
  readonly outputFolder: string;
  readonly files: Files;
  readonly processes: Processes;
  readonly search: Search;
  readonly snapshots: Snapshots;
  readonly changeTracker: ChangeTracker;
}
