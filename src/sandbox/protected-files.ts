import { readdirSync, realpathSync, statSync, type Dirent } from "node:fs";
import { join, relative } from "node:path";
import { isOwnConfiguration } from "../permission/own-configuration.ts";
import type { ReadFilter } from "./read-filter.ts";

/** Folders of a workspace that are looked at; in more, protected files could be missed. */
const folderLimit = 100_000;
/** Folders between two pauses for other work. */
const foldersPerPause = 200;
/** A folder that changed this recently may change again without another time stamp. */
const unstableMs = 50;

/** Folders in which the agent and git read no configuration, and which have too many entries. */
const skippedFolders: ReadonlySet<string> = new Set(["node_modules"]);
/** Entries in git's own folder that name programs to run, or that lead to such files. */
const gitEntries = ["hooks", "config", "config.worktree", "commondir", "gitdir"] as const;

/**
 * Files of a workspace that a command may not change or read. Real paths, which existed at the time of the
 * search.
 */
export interface ProtectedFiles {
  readonly pinned: readonly string[];
  readonly readOnly: readonly string[];
  readonly hidden: readonly string[];
}

interface Folder {
  readonly changedMs: number;
  readonly listedMs: number;
  readonly folders: readonly string[];
  /** Its `.git`, in which changes leave no trace in this folder. */
  readonly repository: { readonly path: string; readonly isFolder: boolean } | undefined;
  readonly found: Pick<ProtectedFiles, "readOnly" | "hidden">;
}

/** Finds protected files, and remembers each folder until it changes. */
export class ProtectedFileSearch {
  #key = "";
  #folders = new Map<string, Folder>();

  /** Rejects if there are too many folders. `cwd` is the folder to which paths in rules are relative. */
  async find(roots: readonly string[], cwd: string, filter: ReadFilter): Promise<ProtectedFiles> {
    if (this.#key !== filter.key) this.#folders.clear();
    this.#key = filter.key;
    const known = new Map<string, Folder>();
    const waiting = [...roots];
    for (let path = waiting.pop(); path !== undefined; path = waiting.pop()) {
      if (known.has(path)) continue;
      const folder = this.#list(path, cwd, filter);
      if (folder === undefined) continue;
      known.set(path, folder);
      waiting.push(...folder.folders);
      if (known.size > folderLimit) throw new Error(`the workspace has more than ${folderLimit} folders`);
      if (known.size % foldersPerPause === 0) await new Promise((resolve) => setImmediate(resolve));
    }
    this.#folders = known;
    const all = [...known.values()];
    const repositories = { pinned: [] as string[], readOnly: [] as string[] };
    for (const { repository } of all)
      if (repository !== undefined) addRepository(repository.path, repository.isFolder, repositories);
    return {
      pinned: repositories.pinned,
      readOnly: [...repositories.readOnly, ...all.flatMap(({ found }) => found.readOnly)],
      hidden: all.flatMap(({ found }) => found.hidden),
    };
  }

  /** Undefined if it is not a folder, or cannot be listed. */
  #list(path: string, cwd: string, filter: ReadFilter): Folder | undefined {
    try {
      const { mtimeMs: changedMs } = statSync(path);
      const known = this.#folders.get(path);
      if (known?.changedMs === changedMs && known.listedMs - changedMs > unstableMs) return known;
      const listedMs = Date.now();
      return {
        changedMs,
        listedMs,
        ...sortEntries(path, readdirSync(path, { withFileTypes: true }), cwd, filter),
      };
    } catch {
      return undefined;
    }
  }
}

function sortEntries(
  folder: string,
  entries: readonly Dirent[],
  cwd: string,
  filter: ReadFilter,
): Pick<Folder, "folders" | "repository" | "found"> {
  const folders: string[] = [];
  const found = { readOnly: [] as string[], hidden: [] as string[] };
  let repository: Folder["repository"];
  for (const entry of entries) {
    const path = join(folder, entry.name);
    const name = relative(cwd, path);
    const isFolder = entry.isDirectory();
    if (entry.name === ".git") repository = { path, isFolder };
    else if (isFolder ? filter.hidesFolder(name) : filter.hides(name))
      found.hidden.push(...resolveLink(path));
    else if (!entry.isSymbolicLink() && isOwnConfiguration(path)) found.readOnly.push(path);
    else if (isFolder && !skippedFolders.has(entry.name)) folders.push(path);
  }
  return { folders, repository, found };
}

/** Adds the parts of a `.git` that git runs or obeys, with those of submodules and worktrees. */
export function addRepository(
  path: string,
  isFolder: boolean,
  found: { pinned: string[]; readOnly: string[] },
): void {
  // A file names another folder.
  if (!isFolder) return void found.readOnly.push(path);
  found.pinned.push(path);
  const names = listNames(path);
  found.readOnly.push(...gitEntries.filter((name) => names.includes(name)).map((name) => join(path, name)));
  for (const kind of ["modules", "worktrees"]) {
    const folder = join(path, kind);
    const inner = names.includes(kind) ? listNames(folder) : [];
    if (inner.length > 0) found.pinned.push(folder);
    for (const name of inner) addRepository(join(folder, name), true, found);
  }
}

function listNames(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

/** Returns the real path; nothing for a link without a target. */
function resolveLink(path: string): string[] {
  try {
    return [realpathSync.native(path)];
  } catch {
    return [];
  }
}
