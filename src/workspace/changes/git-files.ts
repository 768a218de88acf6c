import { readFileSync, statSync } from "node:fs";
import { rm, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join, relative, resolve } from "node:path";
import { codeOf } from "../../base/errors.ts";
import { randomUuid } from "../../base/text/hash.ts";
import { snapshotLimitBytes } from "../files/snapshot.ts";
import { toSlashes } from "../../base/files/paths.ts";
import type { NamedPath } from "./command-changes.ts";
import { type FileState, type FileVersion, inodeRange } from "./file-state.ts";
import { findIndexEntries, type IndexedFile, type IndexEntry } from "./git-index.ts";
import type { RunGit } from "./git-runner.ts";

/** The files of a folder that differ from git's index. Paths are absolute. */
export interface GitListing {
  /** Changed and deleted files of the index. */
  readonly tracked: readonly string[];
  /** Files that are neither in the index nor ignored. */
  readonly untracked: readonly string[];
}

/** The checked-out commit, to tell the user that it moved. */
export interface GitHead {
  /** Undefined if no branch is checked out. */
  readonly branch: string | undefined;
  readonly commit: string | undefined;
}

/** Contents of git's index at one time. */
export interface IndexCopy {
  readonly bytes: Buffer;
  readonly modified: number;
  readonly inode: number;
}

/** Bytes per path in a limited listing: a longer average counts as too many paths. */
const pathBytes = 200;
const listingLimitBytes = 32 * 1024 * 1024;
const indexLimitBytes = 256 * 1024 * 1024;
const packedRefsLimitBytes = 8 * 1024 * 1024;

/** A folder in a git worktree. */
export class GitFiles {
  readonly #git: RunGit;
  readonly #folder: string;
  readonly #place: GitPlace;
  #index: IndexCopy | undefined;

  private constructor(git: RunGit, folder: string, place: GitPlace) {
    this.#git = git;
    this.#folder = folder;
    this.#place = place;
  }

  /** Returns undefined if git does not accept the folder as a worktree. */
  static async open(git: RunGit, folder: string): Promise<GitFiles | undefined> {
    const args = ["--show-prefix", "--absolute-git-dir", "--git-common-dir", "--git-path", "index"];
    try {
      const printed = await git(["rev-parse", "--show-object-format", ...args], {
        cwd: folder,
        limitBytes: 65_536,
      });
      const [format = "", prefix = "", gitDir = "", commonDir = "", index = ""] = printed
        .toString("utf8")
        .split("\n");
      if (gitDir === "" || index === "") return undefined;
      return new GitFiles(git, folder, {
        prefix,
        gitDir,
        commonDir: resolve(folder, commonDir),
        indexPath: resolve(folder, index),
        idBytes: format === "sha256" ? 32 : 20,
      });
    } catch {
      return undefined;
    }
  }

  /** Returns the index, read again only if its file has changed. Undefined if there is none or it is too large. */
  readIndex(): IndexCopy | undefined {
    const { indexPath } = this.#place;
    const found = statSync(indexPath, { throwIfNoEntry: false });
    if (found === undefined || found.size > indexLimitBytes) return undefined;
    const known = this.#index;
    if (known?.modified === found.mtimeMs && known.inode === found.ino && known.bytes.length === found.size)
      return known;
    this.#index = { bytes: readFileSync(indexPath), modified: found.mtimeMs, inode: found.ino };
    return this.#index;
  }

  /** Lists the files that differ from the index, as it is now or as it was. */
  async list(index?: IndexCopy): Promise<GitListing> {
    if (index === undefined || this.readIndex() === index) return this.#list({});
    const path = join(tmpdir(), `index-${randomUuid()}`);
    try {
      await writeFile(path, index.bytes, { mode: 0o600, flag: "wx" });
      // Git compares the contents of files that are not older than its index.
      const modified = Math.floor(index.modified / 1_000);
      await utimes(path, modified, modified);
      return await this.#list({ GIT_INDEX_FILE: path });
    } finally {
      await rm(path, { force: true });
    }
  }

  async #list(env: Readonly<Record<string, string>>): Promise<GitListing> {
    const args = ["ls-files", "-z", "-t", "--modified", "--others", "--exclude-standard"];
    const printed = await this.#git(args, { cwd: this.#folder, limitBytes: listingLimitBytes, env });
    const tracked = new Set<string>();
    const untracked: string[] = [];
    for (const record of printed.toString("utf8").split("\0")) {
      const path = join(this.#folder, record.slice(2));
      if (record === "" || record.endsWith("/")) continue;
      if (record.startsWith("?")) untracked.push(path);
      else tracked.add(path);
    }
    return { tracked: [...tracked], untracked };
  }

  /** Lists the folders of the files in the index. */
  async listFolders(): Promise<ReadonlySet<string>> {
    const printed = await this.#git(["ls-files", "-z"], { cwd: this.#folder, limitBytes: indexLimitBytes });
    const folders = new Set<string>();
    for (const name of printed.toString("utf8").split("\0")) folders.add(dirname(name));
    return new Set([...folders].map((name) => join(this.#folder, name)));
  }

  /** Leaves out ignored paths. */
  async omitIgnored(paths: readonly string[]): Promise<string[]> {
    if (paths.length === 0) return [];
    const printed = await this.#git(["check-ignore", "-z", "--stdin"], {
      cwd: this.#folder,
      limitBytes: listingLimitBytes,
      input: paths.map((path) => `${toSlashes(relative(this.#folder, path))}\0`).join(""),
      emptyCode: 1,
    });
    const ignored = new Set(printed.toString("utf8").split("\0"));
    return paths.filter((path) => !ignored.has(toSlashes(relative(this.#folder, path))));
  }

  /** Lists ignored files that the paths name; undefined if there are more than the limit. */
  async listIgnored(named: readonly NamedPath[], limit: number): Promise<string[] | undefined> {
    const args = ["ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--"];
    const paths = named.flatMap((one) => toPathspecs(this.#folder, one));
    const options = { cwd: this.#folder, limitBytes: limit * pathBytes, env: { GIT_LITERAL_PATHSPECS: "0" } };
    try {
      const printed = await this.#git([...args, ...paths], options);
      const names = printed
        .toString("utf8")
        .split("\0")
        .filter((name) => name !== "" && !name.endsWith("/"));
      return names.length > limit ? undefined : names.map((name) => join(this.#folder, name));
    } catch (error) {
      if (codeOf(error) === "ERR_CHILD_PROCESS_STDIO_MAXBUFFER") return undefined;
      throw error;
    }
  }

  /** Returns files as they were when they equalled the index, from git's objects. */
  async loadClean(
    paths: readonly string[],
    index: IndexCopy | undefined,
    limitBytes: number,
  ): Promise<Map<string, FileVersion>> {
    const { prefix, idBytes } = this.#place;
    const wanted = new Map(paths.map((path) => [this.#toIndexPath(path, prefix), path]));
    const entries =
      index === undefined ? [] : [...findIndexEntries(index.bytes, (path) => wanted.has(path), idBytes)];
    let bytes = 0;
    const small = entries.filter(([, { size }]) => {
      bytes += size <= snapshotLimitBytes ? size : 0;
      return size <= snapshotLimitBytes && bytes <= limitBytes;
    });
    const blobs = await this.#loadBlobs(new Set(small.map(([, { id }]) => id)), limitBytes);
    const versions = new Map<string, FileVersion>();
    for (const [name, entry] of entries) {
      const path = wanted.get(name);
      const blob = blobs.get(entry.id);
      if (path !== undefined) versions.set(path, toVersion(entry, blob));
    }
    return versions;
  }

  /** Returns the paths of the index at which these files may have been before they were moved. */
  findPaths(files: readonly FileState[], index: IndexCopy | undefined): string[] {
    if (files.length === 0 || index === undefined) return [];
    const inodes = new Set(files.map(({ inode }) => inode % inodeRange));
    const times = new Set(files.map(({ created, size }) => `${created} ${size}`));
    const { prefix, idBytes } = this.#place;
    const isOneOf = ({ inode, created, size }: IndexedFile) =>
      created === undefined ? inodes.has(inode) : times.has(`${created} ${size}`);
    const entries = findIndexEntries(index.bytes, (_, file) => isOneOf(file), idBytes);
    const names = [...entries.keys()].filter((name) => name.startsWith(prefix));
    return names.map((name) => join(this.#folder, name.slice(prefix.length)));
  }

  async #loadBlobs(ids: ReadonlySet<string>, limitBytes: number): Promise<Map<string, Buffer>> {
    const blobs = new Map<string, Buffer>();
    if (ids.size === 0) return blobs;
    try {
      const printed = await this.#git(["cat-file", "--batch"], {
        cwd: this.#folder,
        limitBytes: 2 * limitBytes + ids.size * 128,
        input: [...ids].map((id) => `${id}\n`).join(""),
      });
      for (let at = 0; at < printed.length;) {
        const end = printed.indexOf(0x0a, at);
        const [id = "", kind = "", size = ""] = printed.toString("latin1", at, end).split(" ");
        at = end + 1;
        // An object that is missing has no content.
        if (size === "") continue;
        if (kind === "blob") blobs.set(id, printed.subarray(at, at + Number(size)));
        at += Number(size) + 1;
      }
    } catch {
      // The command removed the repository: the contents count as not kept.
    }
    return blobs;
  }

  /** Reads the checked-out commit without running git. */
  readHead(): GitHead | undefined {
    const { gitDir, commonDir } = this.#place;
    const head = readText(join(gitDir, "HEAD"));
    if (head === undefined) return undefined;
    const ref = /^ref: (.+)$/.exec(head)?.[1];
    if (ref === undefined) return { branch: undefined, commit: head };
    const commit =
      readText(join(gitDir, ref)) ?? readText(join(commonDir, ref)) ?? findPackedRef(commonDir, ref);
    return { branch: ref.replace(/^refs\/heads\//, ""), commit };
  }

  #toIndexPath(path: string, prefix: string): string {
    return `${prefix}${toSlashes(relative(this.#folder, path))}`;
  }
}

interface GitPlace {
  /** The folder in the worktree, empty or with a slash at the end. */
  readonly prefix: string;
  readonly gitDir: string;
  readonly commonDir: string;
  readonly indexPath: string;
  /** Length of an object's name. */
  readonly idBytes: number;
}

/** The content is unknown if a filter changed it at checkout: then the file has another size than its blob. */
function toVersion(
  { size, isLink, isExecutable, inode, created }: IndexEntry,
  blob: Buffer | undefined,
): FileVersion {
  const bytes = blob?.length === size ? blob : blob && addCarriageReturns(blob, size);
  return { bytes, isLink, mode: isExecutable ? 0o755 : undefined, inode, created };
}

/** Returns the text with the line ends of Windows if that has the size. */
function addCarriageReturns(blob: Buffer, size: number): Buffer | undefined {
  const text = blob.toString("latin1");
  if (text.includes("\r") || text.includes("\0")) return undefined;
  const converted = Buffer.from(text.replaceAll("\n", "\r\n"), "latin1");
  return converted.length === size ? converted : undefined;
}

function toPathspecs(folder: string, { path, isGlob, isBelow }: NamedPath): string[] {
  const name = toSlashes(relative(folder, path));
  if (!isGlob) return [`:(literal)${name}`];
  return [`:(glob)${name}`, ...(isBelow ? [`:(glob)${name}/**`] : [])];
}

function findPackedRef(commonDir: string, ref: string): string | undefined {
  const line = readText(join(commonDir, "packed-refs"))
    ?.split("\n")
    .find((one) => one.endsWith(` ${ref}`));
  return line?.split(" ")[0];
}

function readText(path: string): string | undefined {
  try {
    const found = statSync(path, { throwIfNoEntry: false });
    if (found === undefined || !found.isFile() || found.size > packedRefsLimitBytes) return undefined;
    return readFileSync(path, "utf8").trim();
  } catch {
    return undefined;
  }
}
