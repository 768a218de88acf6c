import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { isMissing, messageOf } from "../../base/errors.ts";
import { sha256 } from "../../base/text/hash.ts";
import type { Worktree } from "../../message/message.ts";
import type { Files } from "../files/files.ts";
import type { Git } from "./git.ts";
import type { Worktrees } from "./worktrees.ts";

/** Maximum number of files of one merge. */
const filesLimit = 500;

/** A file's content; null if there is none. */
export interface MergedContent {
  readonly bytes: Buffer;
  readonly hash: string;
  /** Permission bits of a new file. */
  readonly mode?: number;
}

/** A file of the main checkout that the merge changes. */
export interface MergedFile {
  /** Absolute path in the main checkout. */
  readonly path: string;
  readonly before: MergedContent | null;
  readonly after: MergedContent | null;
  /** The content has conflict markers. */
  readonly hasConflict: boolean;
}

export interface MergePlan {
  readonly files: readonly MergedFile[];
  /** Files that are not changed, with the reason. */
  readonly skipped: readonly { readonly path: string; readonly reason: string }[];
  /** Commit with the worktree's state. */
  readonly state: string;
}

/** Plans to merge the changes of a worktree since `base` into the files of the main checkout, one by one. */
export async function planMerge(
  worktrees: Worktrees,
  worktree: Worktree,
  base: string,
  files: Pick<Files, "read">,
): Promise<MergePlan> {
  const state = await worktrees.snapshot(worktree.root, { tracked: false });
  const git = await worktrees.openGit(worktree.root);
  const changed = await listChanges(git, base, state);
  if (changed.length > filesLimit)
    throw new Error(`more than ${filesLimit} files differ; merge the branch ${worktree.branch} with git`);
  const folder = await mkdtemp(join(tmpdir(), "fairlead-merge-"));
  try {
    const merged: MergedFile[] = [];
    const skipped: { path: string; reason: string }[] = [];
    for (const change of changed) {
      const path = join(worktree.main, change.name);
      const outcome = await mergeFile(change, {
        git,
        folder,
        ours: await readOurs(files, path),
        branch: worktree.branch,
      });
      if (typeof outcome === "string") skipped.push({ path, reason: outcome });
      else if (outcome !== undefined) merged.push({ path, ...outcome });
    }
    return { files: merged, skipped, state };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** A changed path with git's modes and object names before and after. */
interface Change {
  readonly name: string;
  readonly before: Entry | undefined;
  readonly after: Entry | undefined;
}

interface Entry {
  readonly mode: string;
  readonly id: string;
}

async function listChanges(git: Git, base: string, state: string): Promise<Change[]> {
  const printed = await git.bytes(["diff-tree", "-r", "-z", "--raw", "--no-renames", base, state]);
  const fields = printed.toString("utf8").split("\0");
  const changes: Change[] = [];
  for (let at = 0; at + 1 < fields.length; at += 2) {
    const [oldMode = "", newMode = "", oldId = "", newId = ""] = (fields[at] ?? "").slice(1).split(" ");
    changes.push({
      name: fields[at + 1] ?? "",
      before: toEntry(oldMode, oldId),
      after: toEntry(newMode, newId),
    });
  }
  return changes;
}

const toEntry = (mode: string, id: string): Entry | undefined =>
  mode === "000000" ? undefined : { mode, id };

const regularModes = new Set(["100644", "100755"]);

interface MergeContext {
  readonly git: Git;
  /** For temporary files. */
  readonly folder: string;
  readonly ours: MergedContent | null | string;
  readonly branch: string;
}

/** Returns undefined if nothing changes, and the reason if the file is left as it is. */
async function mergeFile(
  { name, before, after }: Change,
  { git, folder, ours, branch }: MergeContext,
): Promise<Omit<MergedFile, "path"> | string | undefined> {
  if (typeof ours === "string") return ours;
  for (const entry of [before, after])
    if (entry !== undefined && !regularModes.has(entry.mode))
      return "links and submodules are not merged; change it by hand";
  const lineEnds = ours === null || ours.bytes.includes("\r\n") ? [] : plainLineEnds;
  const [old, theirs] = await Promise.all([
    load(git, name, before, lineEnds),
    load(git, name, after, lineEnds),
  ]);
  if (isSame(ours, theirs)) return undefined;
  if (isSame(ours, old)) return { before: ours, after: theirs, hasConflict: false };
  if (theirs === null) return "it was deleted in the worktree and changed here";
  if (ours === null) return "it was changed in the worktree and deleted here";
  if (old?.hash === theirs.hash) return undefined;
  if (isBinary(ours) || isBinary(theirs)) return "it is binary and was changed in both places";
  const paths = { ours: join(folder, "ours"), old: join(folder, "old"), theirs: join(folder, "theirs") };
  await writeFile(paths.ours, ours.bytes);
  await writeFile(paths.old, old?.bytes ?? "");
  await writeFile(paths.theirs, theirs.bytes);
  const labels = ["-L", "main checkout", "-L", "common base", "-L", branch];
  const merged = await git.run(["merge-file", "-p", ...labels, paths.ours, paths.old, paths.theirs]);
  // The exit code is the number of conflicts, or above 127 for an error.
  if (merged.exitCode > 127) throw new Error(merged.stderr);
  const content = toContent(merged.stdout);
  if (content.hash === ours.hash) return undefined;
  return { before: ours, after: content, hasConflict: merged.exitCode > 0 };
}

/** Returns the reason if the file cannot be read. */
async function readOurs(files: Pick<Files, "read">, path: string): Promise<MergedContent | null | string> {
  try {
    return await files.read(path);
  } catch (error) {
    return isMissing(error) ? null : messageOf(error);
  }
}

/** Settings by which git writes `\n`: a file that was never checked out may have it in spite of `core.autocrlf`. */
const plainLineEnds: readonly string[] = ["-c", "core.autocrlf=false", "-c", "core.eol=lf"];

async function load(
  git: Git,
  name: string,
  entry: Entry | undefined,
  lineEnds: readonly string[],
): Promise<MergedContent | null> {
  if (entry === undefined) return null;
  // With the filters of the checkout, such as line ends.
  const bytes = await git.bytes([...lineEnds, "cat-file", "--filters", `--path=${name}`, entry.id]);
  return { ...toContent(bytes), mode: entry.mode === "100755" ? 0o755 : 0o644 };
}

const toContent = (bytes: Buffer): MergedContent => ({ bytes, hash: sha256(bytes) });

const isSame = (one: MergedContent | null, other: MergedContent | null): boolean => one?.hash === other?.hash;

const isBinary = ({ bytes }: MergedContent): boolean => bytes.subarray(0, 8_000).includes(0);
