import { type FSWatcher, type Stats, lstatSync, readFileSync, statfsSync, watch } from "node:fs";
import { basename, dirname, join } from "node:path";
import { Serial } from "../../base/async.ts";
import { isBelow } from "../../base/files/paths.ts";
import { IgnoreRules } from "../search/ignore-rules.ts";
import { readEntries } from "./folder-files.ts";

/** Maximum number of watched folders per workspace folder. Each needs about 1 KB of the kernel's memory. */
const watchedFoldersLimit = 8_000;
/** Part of the user's watches that one workspace folder may use: editors need them too. */
const watchesPart = 1 / 8;
/** Maximum number of events between two listings. It is below the length of the kernel's queue. */
export const watchEventsLimit = 8_000;
/** Maximum number of changed paths between two listings. */
const changedPathsLimit = 1_000;
/** Time without a command after which the watches are closed. */
const idleLimitMs = 10 * 60_000;
/** Linux reports every change on these file systems; on others, another machine or host may write unseen. */
const localFileSystems = new Set([
  0xef53, // ext4
  0x58465342, // XFS
  0x9123683e, // Btrfs
  0x01021994, // tmpfs
  0x794c7630, // overlayfs
  0x2fc12fc1, // ZFS
  0xf2f52010, // F2FS
  0xca451a4e, // bcachefs
]);

/** Events of all watches of this process: they share one queue of the kernel, which drops events when it is full. */
export interface EventCount {
  total: number;
}

/**
 * Watches a folder and its subfolders that git does not ignore, to tell which paths changed since a listing. Changes
 * through a memory map or another hard link are not seen.
 */
export class FolderWatch {
  readonly #root: string;
  readonly #limit: number;
  readonly #count: EventCount;
  /** Folders that are not watched. */
  readonly #omitted: ReadonlySet<string>;
  readonly #arming = new Serial();
  readonly #watchers = new Map<string, FSWatcher>();
  /** Paths with an event since the last `reset`. */
  #changed = new Set<string>();
  /** Paths that were or may be folders, since the last `arm`. */
  readonly #otherFolders = new Set<string>();
  #countAtReset = 0;
  #isComplete = false;
  #isUsable = true;
  /** Metadata of the root when it was watched. */
  #rootState: Stats | undefined;
  #closed = 0;
  #index: unknown;
  #idle: NodeJS.Timeout | undefined;

  private constructor(root: string, limit: number, count: EventCount, omitted: ReadonlySet<string>) {
    this.#root = root;
    this.#limit = limit;
    this.#count = count;
    this.#omitted = omitted;
  }

  /** Returns undefined where events may be missing. */
  static open(root: string, count: EventCount, omitted: ReadonlySet<string>): FolderWatch | undefined {
    if (process.platform !== "linux") return undefined;
    try {
      const queue = readKernelLimit("max_queued_events");
      if (queue < 2 * watchEventsLimit || !localFileSystems.has(statfsSync(root).type)) return undefined;
      const limit = Math.min(watchedFoldersLimit, readKernelLimit("max_user_watches") * watchesPart);
      return new FolderWatch(root, limit, count, omitted);
    } catch {
      return undefined;
    }
  }

  /**
   * Watches all folders that are not watched yet. Never rejects.
   * - `listTracked`: lists folders of tracked files, which may be ignored. Called if `index` is another one.
   */
  arm(index: unknown, listTracked: () => Promise<Iterable<string>>): Promise<void> {
    return this.#arming.run(async () => {
      if (!this.#isUsable) return;
      const closed = this.#closed;
      try {
        if (!this.#isComplete || this.#isOtherRoot()) this.#restart();
        await this.#armOtherFolders();
        if (!this.#isComplete) await this.#walk(this.#root, await IgnoreRules.aboveInGit(this.#root));
        if (!this.#isComplete || this.#index !== index)
          for (const folder of await listTracked()) this.#watchUpTo(folder);
        this.#index = index;
        // Too many events during this close the watches.
        this.#isComplete = closed === this.#closed;
        clearTimeout(this.#idle);
        this.#idle = setTimeout(() => this.close(), idleLimitMs).unref();
      } catch {
        // The user's watches are used up, or the folder is gone.
        this.#isUsable = false;
        this.close();
      }
    });
  }

  /** Forgets the changes so far. */
  async reset(): Promise<void> {
    await deliverEvents();
    this.#changed = new Set();
    this.#countAtReset = this.#count.total;
  }

  /** Returns the files that changed or were removed since `reset`; undefined if that is not known. */
  async listChanges(): Promise<ReadonlySet<string> | undefined> {
    await deliverEvents();
    if (!this.#isComplete || this.#isBeyondLimit() || this.#isOtherRoot()) return undefined;
    for (const path of this.#changed)
      if (basename(path) === ".gitignore" || this.#watchers.has(path) || isFolder(path)) return undefined;
    return this.#changed;
  }

  close(): void {
    this.#closed++;
    this.#isComplete = false;
    clearTimeout(this.#idle);
    this.#closeBelow(this.#root);
  }

  #restart(): void {
    this.#isComplete = false;
    this.#closeBelow(this.#root);
    this.#rootState = lstatSync(this.#root);
  }

  /** Whether the root was moved and replaced: then the watches are in another folder. */
  #isOtherRoot(): boolean {
    const found = lstatSync(this.#root, { throwIfNoEntry: false });
    return found?.ino !== this.#rootState?.ino || found?.dev !== this.#rootState?.dev;
  }

  #isBeyondLimit(): boolean {
    return (
      this.#changed.size > changedPathsLimit || this.#count.total - this.#countAtReset > watchEventsLimit
    );
  }

  /** Watches folders that were made, and no longer those that were moved or removed. */
  async #armOtherFolders(): Promise<void> {
    const others = [...this.#otherFolders];
    this.#otherFolders.clear();
    for (const path of others) {
      const isRepository = basename(path) === ".git";
      this.#closeBelow(isRepository ? dirname(path) : path);
      if (isRepository || !this.#isComplete || !isFolder(path)) continue;
      const rules = await IgnoreRules.aboveInGit(path);
      if (!rules.excludes(basename(path), true)) await this.#walk(path, rules);
    }
  }

  /** Watches a folder before it is read, so that no subfolder is missed. */
  async #walk(folder: string, above: IgnoreRules): Promise<void> {
    if (this.#omitted.has(folder)) return;
    this.#watch(folder);
    const entries = await readEntries(folder);
    const names = new Set(entries.map(({ name }) => name));
    // Git does not list the files of a repository inside.
    if (folder !== this.#root && names.has(".git")) return this.#closeBelow(folder);
    const rules = await above.enter(folder, names);
    for (const entry of entries)
      if (entry.isDirectory() && entry.name !== ".git" && !rules.excludes(entry.name, true))
        await this.#walk(join(folder, entry.name), rules);
  }

  #watchUpTo(folder: string): void {
    if (!isBelow(folder, this.#root) || this.#watchers.has(folder)) return;
    if (isFolder(folder)) this.#watch(folder);
    if (folder !== this.#root) this.#watchUpTo(dirname(folder));
  }

  #watch(folder: string): void {
    if (this.#watchers.has(folder)) return;
    if (this.#watchers.size >= this.#limit) throw new Error("too many folders");
    const found = lstatSync(folder, { throwIfNoEntry: false });
    if (found === undefined) return;
    if (found.dev !== this.#rootState?.dev) throw new Error("another file system");
    const watcher = watch(folder, { persistent: false }, (kind, name) =>
      this.#note(kind, join(folder, name ?? "")),
    );
    watcher.on("error", () => this.close());
    this.#watchers.set(folder, watcher);
  }

  /** `kind` is "rename" if the path was made, moved or removed. */
  #note(kind: string, path: string): void {
    this.#count.total++;
    // A folder that is removed reports its own name.
    const isRootRemoved = kind === "rename" && path === join(this.#root, basename(this.#root));
    if (this.#isBeyondLimit() || isRootRemoved) return this.close();
    this.#changed.add(path);
    if (kind === "rename" && (this.#watchers.has(path) || isFolder(path))) this.#otherFolders.add(path);
  }

  #closeBelow(folder: string): void {
    for (const [path, watcher] of this.#watchers) {
      if (!isBelow(path, folder)) continue;
      watcher.close();
      this.#watchers.delete(path);
    }
  }
}

/** The event loop reads all events of the kernel's queue once between the two. */
function deliverEvents(): Promise<void> {
  return new Promise((resolve) => setImmediate(() => setImmediate(resolve)));
}

function readKernelLimit(name: string): number {
  return Number(readFileSync(`/proc/sys/fs/inotify/${name}`, "utf8"));
}

function isFolder(path: string): boolean {
  try {
    return lstatSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false;
  } catch {
    return false;
  }
}
