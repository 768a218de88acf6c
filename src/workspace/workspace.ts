import type { Files } from "./files/files.ts";
import type { Processes } from "./process/process.ts";
import type { Search } from "./search/search.ts";
import type { Snapshots } from "./files/snapshot.ts";

/** A folder that a session works in, with the doors to its disk and its processes. */
export interface Workspace {
  /** Absolute real path of the session's working directory. */
  readonly cwd: string;
  /** `cwd` and the additional directories, absolute real paths: what lies under none of them is external. */
  readonly roots: readonly string[];
  /** The root of the git worktree that holds `cwd`, undefined outside git. */
  readonly worktree: string | undefined;
  readonly home: string;
  /** Where truncated outputs are kept for 7 days. */
  readonly outputFolder: string;
  readonly files: Files;
  readonly processes: Processes;
  readonly search: Search;
  readonly snapshots: Snapshots;
}
