import { isMissing, messageOf } from "../../base/errors.ts";
import type { FileChange } from "../../message/part.ts";
import { StaleFile } from "../../workspace/files/files.ts";
import type { Workspace } from "../../workspace/workspace.ts";
import { assertSamePlace, explainFileErrors, saveSnapshot } from "../text-file.ts";

/** One file from one content to the next; null is "no such file". */
export interface FileWrite {
  readonly path: string;
  readonly before: Content | null;
  readonly after: Content | null;
  readonly additions: number;
  readonly deletions: number;
}

interface Content {
  readonly bytes: Buffer;
  /** SHA-256, hex. */
  readonly hash: string;
  /** Permission bits for a file that is made with it. */
  readonly mode?: number;
}

export type BatchOutcome =
  /** As it stands now: an editor may have formatted what it saved. */
  | { readonly outcome: "written"; readonly writes: readonly FileWrite[] }
  /** Something failed and is taken back, but for what stands in `left`. */
  | { readonly outcome: "failed"; readonly error: Error; readonly left: readonly FileWrite[] };

/**
 * Makes all writes or none. Call it under the locks of all paths. Throws a `ToolFailure` when the disk does not hold
 * what the writes begin from.
 */
export async function writeBatch(workspace: Workspace, writes: readonly FileWrite[]): Promise<BatchOutcome> {
  for (const write of writes) await explainFileErrors(write.path, () => assertReady(workspace, write));
  await saveSnapshots(workspace, writes);
  const done: FileWrite[] = [];
  for (const write of writes) {
    try {
      const written = await explainFileErrors(write.path, () => applyWrite(workspace, write));
      done.push(written);
      if (written.after !== write.after) await saveSnapshots(workspace, [written]);
    } catch (error) {
      const left = await rollBack(workspace, done);
      return { outcome: "failed", error: error instanceof Error ? error : new Error(messageOf(error)), left };
    }
  }
  return { outcome: "written", writes: done };
}

/** What stands of a batch that could not be taken back as a whole. */
export function toFileChange({ path, before, after, additions, deletions }: FileWrite): FileChange {
  const operation = before === null ? "add" : after === null ? "delete" : "update";
  return {
    path,
    operation,
    before: before?.hash ?? null,
    after: after?.hash ?? null,
    additions,
    deletions,
  };
}

async function assertReady(workspace: Workspace, { path, before }: FileWrite): Promise<void> {
  await assertSamePlace(workspace, path);
  const hash = await hashOrNull(workspace, path);
  if (hash !== (before?.hash ?? null)) throw new StaleFile(`${path} was changed meanwhile.`);
}

async function hashOrNull({ files }: Workspace, path: string): Promise<string | null> {
  try {
    return (await files.read(path)).hash;
  } catch (error) {
    if (isMissing(error)) return null;
    throw error;
  }
}

/** Kept before the first write: what cannot be undone because the disk is full is not done. */
async function saveSnapshots({ snapshots }: Workspace, writes: readonly FileWrite[]): Promise<void> {
  for (const { path, before, after } of writes) {
    for (const content of [before, after]) {
      if (content !== null) await saveSnapshot(snapshots, path, content.bytes);
    }
  }
}

/** The write as it came about. */
async function applyWrite({ files }: Workspace, write: FileWrite): Promise<FileWrite> {
  const { path, before, after } = write;
  if (after === null) {
    if (before !== null) await files.remove(path, before.hash);
    return write;
  }
  const { hash, bytes } = await files.write(path, after.bytes, before?.hash ?? null, after.mode);
  return bytes === undefined ? write : { ...write, after: { ...after, hash, bytes } };
}

/** The last first. Returns what could not be taken back, because somebody changed it or the disk fails. */
async function rollBack(workspace: Workspace, done: readonly FileWrite[]): Promise<FileWrite[]> {
  const left: FileWrite[] = [];
  for (const write of done.toReversed()) {
    try {
      await applyWrite(workspace, { ...write, before: write.after, after: write.before });
    } catch {
      // The caller reports it by its path; why the first write failed is what explains this one too.
      left.push(write);
    }
  }
  return left;
}
