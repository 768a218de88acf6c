import { lstatSync, realpathSync } from "node:fs";
import { dirname, relative } from "node:path";
import { Serial } from "../../base/async.ts";
import { lazy } from "../../base/lazy.ts";
import { messageOf } from "../../base/errors.ts";
import { sha256 } from "../../base/text/hash.ts";
import { isBelow } from "../../base/files/paths.ts";
import { snapshotLimitBytes } from "../files/snapshot.ts";
import { type Environment, findProgram } from "../process/find-program.ts";
import { findWorktree } from "../worktree.ts";
import {
  type FileState,
  type FileVersion,
  hasOtherMode,
  inodeRange,
  isSameState,
  readContent,
  readState,
  timeStepMs,
} from "./file-state.ts";
import { type EventCount, FolderWatch } from "./folder-watch.ts";
import { WatchedListing } from "./watched-listing.ts";
import { listFolderFiles, listNamedFiles } from "./folder-files.ts";
import type {
  ChangedFile,
  ChangeTracker,
  CommandChanges,
  FileWrite,
  NamedPath,
  TrackedCommand,
} from "./command-changes.ts";
import { GitFiles, type GitHead, type GitListing, type IndexCopy } from "./git-files.ts";
import { KeptContents } from "./kept-contents.ts";
import { FormerFiles } from "./former-files.ts";
import { takeInode } from "./inode-order.ts";
import { gitRunner, type RunGit } from "./git-runner.ts";

/** Maximum number of files that one command's changes list. */
export const changedFilesLimit = 2_000;
/** Maximum bytes of the contents before a command that are loaded from git, and of those after it. */
export const commandContentsLimitBytes = 64 * 1024 * 1024;
/** Maximum number of changed and untracked files, and of all files outside git. More are not tracked. */
export const listedFilesLimit = 20_000;
/** Maximum number of ignored files in the folders that a command names. */
export const ignoredFilesLimit = 500;
/** Maximum number of folders whose state is cached. */
const cachedFoldersLimit = 4;

export class Tracker implements ChangeTracker {
  readonly #git: () => Promise<RunGit | undefined>;
  /** Least recently used first. */
  readonly #folders = new Map<string, TrackedFolder>();
  readonly #running = new Set<Run>();
  /** One at a time, so that commands that start together share a folder's state. */
  readonly #opening = new Serial();
  readonly #events: EventCount = { total: 0 };
  /** One at a time, so that each change is reported once. */
  readonly #finishing = new Serial();

  readonly #ownFolders: readonly string[];

  constructor(env: () => Environment, ownFolders: readonly string[]) {
    this.#ownFolders = ownFolders;
    this.#git = lazy(async () => {
      const program = await findProgram("git", env());
      return program === undefined ? undefined : gitRunner(program, env);
    });
  }

  async start(roots: readonly string[], named: readonly NamedPath[]): Promise<TrackedCommand> {
    const outer = roots.filter((root) => !roots.some((other) => other !== root && isBelow(root, other)));
    const runs = await Promise.all([...new Set(outer)].map((root) => this.#startIn(root, named)));
    for (const run of runs) this.#running.add(run);
    return { finish: () => this.#finishing.run(() => this.#finish(runs)) };
  }

  acknowledge(path: string, write: FileWrite): void {
    for (const run of this.#running) run.acknowledgeWrite(path, write);
  }

  async #startIn(root: string, named: readonly NamedPath[]): Promise<Run> {
    const own = this.#findOwnFolders(root);
    const run = new Run(
      root,
      named.filter(({ path }) => isBelow(path, root) && path !== root),
      own,
    );
    try {
      await run.start(await this.#opening.run(() => this.#open(root, own)));
    } catch (error) {
      run.fail(messageOf(error));
    }
    return run;
  }

  /** Returns the real paths of the program's folders inside a workspace. */
  #findOwnFolders(root: string): ReadonlySet<string> {
    const paths = this.#ownFolders.map((folder) => toRealPath(folder) ?? folder);
    return new Set(paths.filter((path) => path !== root && isBelow(path, root)));
  }

  async #open(root: string, own: ReadonlySet<string>): Promise<TrackedFolder> {
    const known = this.#folders.get(root);
    const worktree = await findWorktree(root);
    const isKnown = known !== undefined && known.worktree === worktree;
    if (!isKnown) known?.listing?.close();
    this.#folders.delete(root);
    const folder = isKnown ? known : await this.#inspect(root, worktree, own);
    this.#folders.set(root, folder);
    for (const [path, oldest] of this.#folders) {
      if (this.#folders.size <= cachedFoldersLimit) break;
      oldest.listing?.close();
      this.#folders.delete(path);
    }
    return folder;
  }

  async #inspect(
    root: string,
    worktree: string | undefined,
    own: ReadonlySet<string>,
  ): Promise<TrackedFolder> {
    const runGit = worktree === undefined ? undefined : await this.#git();
    const git = runGit && (await GitFiles.open(runGit, root));
    const listing = git && new WatchedListing(git, FolderWatch.open(root, this.#events, own));
    return { worktree, git, listing, contents: new KeptContents(), former: new FormerFiles() };
  }

  async #finish(runs: readonly Run[]): Promise<CommandChanges> {
    const found = await Promise.all(runs.map((run) => run.finish()));
    for (const run of runs) this.#running.delete(run);
    const files = found.flatMap((one) => one.files).sort((one, other) => (one.path < other.path ? -1 : 1));
    // A command that still runs must not report these changes again.
    for (const run of this.#running) run.acknowledge(files);
    return { files, notes: found.flatMap((one) => one.notes) };
  }
}

interface TrackedFolder {
  readonly worktree: string | undefined;
  /** Undefined outside git. */
  readonly git: GitFiles | undefined;
  /** Undefined outside git. */
  readonly listing: WatchedListing | undefined;
  readonly contents: KeptContents;
  readonly former: FormerFiles;
}

/** A file as it was before the command. */
interface Earlier {
  readonly state: FileState;
  readonly bytes: Buffer | undefined;
}

/** One command in one folder. */
class Run {
  readonly #root: string;
  /** The program's folders, whose files are not tracked. */
  readonly #own: ReadonlySet<string>;
  /** Paths of files that the command line names. */
  readonly #named: readonly string[];
  /** Folders and patterns that it names. */
  readonly #namedFolders: readonly NamedPath[];
  #ignored: IgnoredFiles = noIgnoredFiles;
  #folder: TrackedFolder | undefined;
  #problem: string | undefined;
  #index: IndexCopy | undefined;
  #head: GitHead | undefined;
  #started = 0;
  /** Files with a higher inode were made since the start. Undefined where inodes have no order. */
  #lastInode: number | undefined;
  /** Whether a folder is reached without links, by path. */
  readonly #isReal = new Map<string, boolean>();
  /** Changed and untracked files before the command; null for deleted ones. Unlisted tracked files equal the index. */
  readonly #before = new Map<string, Earlier | null>();

  constructor(root: string, named: readonly NamedPath[], own: ReadonlySet<string>) {
    this.#root = root;
    this.#own = own;
    this.#named = this.#omitOwn(named.filter(({ isGlob }) => !isGlob).map(({ path }) => path));
    this.#namedFolders = named.filter(({ isGlob, isBelow }) => isGlob || isBelow);
  }

  fail(problem: string): void {
    this.#problem ??= problem;
  }

  async start(folder: TrackedFolder): Promise<void> {
    this.#folder = folder;
    const { git, contents } = folder;
    this.#index = git?.readIndex();
    this.#head = git?.readHead();
    const { tracked, untracked } = await this.#list(folder, (listing) => listing.listBefore(this.#index));
    this.#ignored = await this.#listIgnored(folder, untracked);
    const named = [...this.#named, ...(this.#ignored.files ?? [])];
    const states = new Map<string, FileState>();
    for (const path of [...tracked, ...untracked, ...named]) {
      const state = readState(path);
      if (state !== undefined) states.set(path, state);
    }
    for (const path of [...tracked, ...named]) this.#before.set(path, null);
    const kept = contents.update(states, new Set(named));
    for (const [path, state] of states) this.#before.set(path, { state, bytes: kept.get(path) });
    this.#lastInode = takeInode(this.#root);
    this.#started = Date.now();
  }

  async finish(): Promise<CommandChanges> {
    const folder = this.#folder;
    try {
      if (folder !== undefined && this.#problem === undefined) return await this.#compare(folder);
    } catch (error) {
      this.fail(messageOf(error));
    }
    return {
      files: [],
      notes: [`Its changes in ${this.#root} are unknown: ${this.#problem ?? "not started"}`],
    };
  }

  /** Takes changes of another command as known. */
  acknowledge(files: readonly ChangedFile[]): void {
    for (const { path, after } of files) {
      if (!isBelow(path, this.#root)) continue;
      const state = after === null ? undefined : readState(path);
      this.#before.set(path, state === undefined ? null : { state, bytes: after?.bytes });
    }
  }

  /** Takes a write of a tool as known, unless the command had changed the file before it. */
  acknowledgeWrite(path: string, { before, after }: FileWrite): void {
    if (!isBelow(path, this.#root)) return;
    const known = this.#before.get(path);
    if (known !== undefined && hashOf(known) !== before) return;
    const state = after === null ? undefined : readState(path);
    this.#before.set(path, state === undefined ? null : { state, bytes: after ?? undefined });
  }

  async #list(
    { listing: known }: TrackedFolder,
    list: (known: WatchedListing) => Promise<GitListing>,
  ): Promise<GitListing> {
    if (known !== undefined) {
      const listing = await list(known);
      const count = listing.tracked.length + listing.untracked.length;
      if (count > listedFilesLimit)
        throw new Error(`more than ${listedFilesLimit} files are changed or untracked.`);
      return { tracked: this.#omitOwn(listing.tracked), untracked: this.#omitOwn(listing.untracked) };
    }
    const untracked = await listFolderFiles(this.#root, { omitted: this.#own, limit: listedFilesLimit });
    if (untracked === undefined)
      throw new Error(`the folder has more than ${listedFilesLimit} files and is not in a git repository.`);
    return { tracked: [], untracked };
  }

  /** Lists the ignored files in the folders that the command names. */
  async #listIgnored({ git }: TrackedFolder, others: readonly string[]): Promise<IgnoredFiles> {
    const folders = this.#namedFolders.filter(({ path, isGlob }) => isGlob || isFolder(path));
    if (folders.length === 0) return noIgnoredFiles;
    const limit = ignoredFilesLimit;
    const files = await (git === undefined
      ? listNamedFiles(this.#root, folders, { omitted: new Set([...others, ...this.#own]), limit })
      : git.listIgnored(folders, limit));
    return { folders, files: files && this.#omitOwn(files) };
  }

  #omitOwn(paths: readonly string[]): readonly string[] {
    if (this.#own.size === 0) return paths;
    return paths.filter((path) => ![...this.#own].some((folder) => isBelow(path, folder)));
  }

  /** Describes named folders that were made or removed with more ignored files than the limit. */
  #describeUncovered(after: IgnoredFiles): string[] {
    const before = this.#ignored;
    const removed = before.files ? [] : before.folders.filter((one) => !after.folders.includes(one));
    const made = after.files ? [] : after.folders.filter((one) => !before.folders.includes(one));
    return [...removed, ...made].map(
      ({ path }) =>
        `${relative(this.#root, path)} has more than ${ignoredFilesLimit} ignored files, which are not undone`,
    );
  }

  async #compare(folder: TrackedFolder): Promise<CommandChanges> {
    const { tracked, untracked } = await this.#list(folder, (listing) => listing.listAfter(this.#index));
    const ignored = await this.#listIgnored(folder, untracked);
    const fromIndex = new Set(tracked);
    // Without a list from before, ignored files cannot be compared.
    const others = [...untracked, ...((this.#ignored.files && ignored.files) ?? [])];
    const paths = [...new Set([...this.#before.keys(), ...tracked, ...others])].sort();
    const differing = paths.flatMap((path) => this.#difference(path, fromIndex) ?? []);
    const clean = differing.filter(({ isClean }) => isClean).map(({ path }) => path);
    const versions =
      (await folder.git?.loadClean(clean, this.#index, commandContentsLimitBytes)) ??
      new Map<string, FileVersion>();
    const reader = new LimitedReader();
    const found = differing.map((one): ComparedFile => ({
      path: one.path,
      before: one.isClean ? (versions.get(one.path) ?? unknownVersion) : toVersion(one.before),
      after: one.state === undefined ? null : reader.read(one.path, one.state),
      state: one.state,
    }));
    const { files, notes } = this.#report(found, folder);
    for (const { path, before, after } of found) {
      const last = after ?? before;
      if (last !== null) folder.former.add(path, last);
    }
    return { files, notes: [...notes, ...this.#describeUncovered(ignored)] };
  }

  /** Compares metadata only. Returns undefined for an unchanged file. */
  #difference(path: string, fromIndex: ReadonlySet<string>): Difference | undefined {
    const before = this.#before.get(path);
    const state = this.#isOwnFolder(dirname(path)) ? readState(path) : undefined;
    if (before === undefined) return { path, state, isClean: fromIndex.has(path), before: null };
    if (before === null) return state === undefined ? undefined : { path, state, isClean: false, before };
    const isRecent = before.state.changed >= this.#started - timeStepMs;
    if (state !== undefined && !isRecent && isSameState(before.state, state)) return undefined;
    return { path, state, isClean: false, before };
  }

  /** False if a folder on the way is a link by now, which would lead to another file. */
  #isOwnFolder(folder: string): boolean {
    const known = this.#isReal.get(folder) ?? isRealPath(folder);
    this.#isReal.set(folder, known);
    return known;
  }

  #report(compared: readonly ComparedFile[], folder: TrackedFolder): CommandChanges {
    const found = compared.filter(hasChanged);
    const foreign = this.#findForeign(compared, folder);
    const own = found.filter((one) => !foreign.has(one));
    const files = own
      .slice(0, changedFilesLimit)
      .map(({ path, before, after }): ChangedFile => ({ path, before, after }));
    const lost = files.filter(({ before, after }) => isUnknown(before) || isUnknown(after));
    const more = own.length - files.length;
    const notes = [
      lost.length > 0 && `${countFiles(lost.length)} too large or could not be read, and not restored`,
      more > 0 && `${more} more files changed; at most ${changedFilesLimit} per command are recorded`,
      foreign.size > 0 &&
        `${countFiles(foreign.size)} already there before, ignored or elsewhere, and not removed`,
      describeMove(this.#head, folder.git?.readHead()),
    ];
    return { files, notes: notes.filter((note) => typeof note === "string") };
  }

  /**
   * Returns new files that are older than the command: they were moved in, or are no longer ignored. An undo must not
   * remove them, unless another file has their content.
   */
  #findForeign(compared: readonly ComparedFile[], { git, former }: TrackedFolder): ReadonlySet<ChangedFile> {
    const inodes = new Set(compared.map(({ before }) => before?.inode && before.inode % inodeRange));
    const old = compared.filter(
      ({ path, before, state }) =>
        before === null &&
        state !== undefined &&
        state.names === 1 &&
        Math.min(state.created, state.changed) < this.#started - timeStepMs &&
        !inodes.has(state.inode % inodeRange) &&
        (this.#lastInode === undefined || state.inode < this.#lastInode) &&
        !former.isMadeAgain(path, state, this.#started),
    );
    const contents = new Set(compared.map(({ before }) => before?.bytes && sha256(before.bytes)));
    // `sed -i.bak` moves each file and writes it again, also one that it does not change.
    const moved = old.flatMap(({ state }) => state ?? []);
    const known = new Set(compared.map(({ path }) => path));
    for (const path of git?.findPaths(moved, this.#index) ?? []) {
      const state = known.has(path) ? undefined : readState(path);
      const bytes = state && readContent(path, state);
      if (bytes !== undefined) contents.add(sha256(bytes));
    }
    return new Set(
      old.filter(({ after }) => after?.bytes === undefined || !contents.has(sha256(after.bytes))),
    );
  }
}

/** Ignored files that a command names. */
interface IgnoredFiles {
  /** The folders that exist, and the patterns. */
  readonly folders: readonly NamedPath[];
  /** Undefined above the limit. */
  readonly files: readonly string[] | undefined;
}

const noIgnoredFiles: IgnoredFiles = { folders: [], files: [] };

/** A file that may have changed, with its metadata after the command. */
interface ComparedFile extends ChangedFile {
  readonly state: FileState | undefined;
}

interface Difference {
  readonly path: string;
  readonly before: Earlier | null;
  readonly state: FileState | undefined;
  /** The file equalled git's index before. */
  readonly isClean: boolean;
}

const unknownVersion: FileVersion = {
  bytes: undefined,
  isLink: false,
  mode: undefined,
  inode: undefined,
  created: undefined,
};

function createVersion({ isLink, mode, inode, created }: FileState, bytes: Buffer | undefined): FileVersion {
  return { bytes, isLink, mode: isLink ? undefined : mode, inode, created };
}

function isUnknown(version: FileVersion | null): boolean {
  return version !== null && version.bytes === undefined;
}

function toVersion(earlier: Earlier | null): FileVersion | null {
  return earlier && createVersion(earlier.state, earlier.bytes);
}

/** Returns undefined if the content was not kept. */
function hashOf(earlier: Earlier | null): string | null | undefined {
  return earlier && earlier.bytes && sha256(earlier.bytes);
}

function hasChanged({ before, after }: ChangedFile): boolean {
  if (before === null || after === null) return before !== after;
  if (before.bytes === undefined || after.bytes === undefined) return true;
  return before.isLink !== after.isLink || hasOtherMode(before, after) || !before.bytes.equals(after.bytes);
}

/** Reads contents until a total size is reached. */
class LimitedReader {
  #bytes = 0;

  read(path: string, state: FileState): FileVersion {
    const isWithin =
      state.size <= snapshotLimitBytes && this.#bytes + state.size <= commandContentsLimitBytes;
    const bytes = isWithin ? readContent(path, state) : undefined;
    this.#bytes += bytes?.length ?? 0;
    return createVersion(state, bytes);
  }
}

function isFolder(path: string): boolean {
  try {
    return lstatSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false;
  } catch {
    // A folder on the way is closed or has become a file.
    return false;
  }
}

function isRealPath(folder: string): boolean {
  return toRealPath(folder) === folder;
}

/** Returns undefined if the path does not exist. */
function toRealPath(path: string): string | undefined {
  try {
    return realpathSync.native(path);
  } catch {
    return undefined;
  }
}

function describeMove(before: GitHead | undefined, after: GitHead | undefined): string | undefined {
  if (before === undefined || after === undefined) return undefined;
  if (before.branch === after.branch && before.commit === after.commit) return undefined;
  return `git's HEAD moved from ${formatHead(before)} to ${formatHead(after)}, and stays there`;
}

function formatHead({ branch, commit }: GitHead): string {
  const short = commit?.slice(0, 8) ?? "no commit";
  return branch === undefined ? short : `${branch} (${short})`;
}

function countFiles(count: number): string {
  return count === 1 ? "1 file was" : `${count} files were`;
}
