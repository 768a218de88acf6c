import type { Files } from "./files/files.ts";
import type { Processes } from "./process/process.ts";
import type { Search } from "./search/search.ts";
import type { Snapshots } from "./files/snapshot.ts";

/** The folder of a session, with access to its files and processes. */
export interface Workspace {
  /** Absolute real path of the session's working directory. */
  readonly cwd: string;
  /** `cwd` and the additional directories, absolute real paths: what lies under none of them is external. */
  readonly roots: readonly string[];
  /** The root of the git worktree that holds `cwd`, undefined outside git. */
  readonly worktree: string | undefined;
  readonly home: string;
  /** Folder in which truncated outputs are stored for 7 days. */
  readonly outputFolder: string;
  readonly files: Files;
  readonly processes: Processes;
  readonly search: Search;
  readonly snapshots: Snapshots;
}
