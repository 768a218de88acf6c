import { isMissing, messageOf } from "../../base/errors.ts";
import type { FileChange } from "../../message/part.ts";
import { StaleFile } from "../../workspace/files/files.ts";
import type { Workspace } from "../../workspace/workspace.ts";
import { assertSameTarget, explainFileErrors, saveSnapshot } from "../text-file.ts";

/** Change of one file's content; null means "no such file". */
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
  /** Permission bits for a new file. */
  readonly mode?: number;
}

export type BatchOutcome =
  /** The final contents: an editor may have formatted the text while saving. */
  | { readonly outcome: "written"; readonly writes: readonly FileWrite[] }
  /** A write failed and the others were undone, except those in `left`. */
  | { readonly outcome: "failed"; readonly error: Error; readonly left: readonly FileWrite[] };

/**
 * Makes all writes or none. The caller must hold the locks of all paths. Throws a `ToolFailure` if a file does not have
 * the expected content.
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

/** Describes a write that could not be undone. */
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
  await assertSameTarget(workspace, path);
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

/** Stores all contents before the first write: if the disk is full, nothing is changed that could not be undone. */
async function saveSnapshots({ snapshots }: Workspace, writes: readonly FileWrite[]): Promise<void> {
  for (const { path, before, after } of writes) {
    for (const content of [before, after]) {
      if (content !== null) await saveSnapshot(snapshots, path, content.bytes);
    }
  }
}

/** Performs a write and returns it with the final content. */
async function applyWrite({ files }: Workspace, write: FileWrite): Promise<FileWrite> {
  const { path, before, after } = write;
  if (after === null) {
    if (before !== null) await files.remove(path, before.hash);
    return write;
  }
  const { hash, bytes } = await files.write(path, after.bytes, before?.hash ?? null, after.mode);
  return bytes === undefined ? write : { ...write, after: { ...after, hash, bytes } };
}

/** Undoes the writes, the last first. Returns those that failed, because of a later change or the disk. */
async function rollBack(workspace: Workspace, done: readonly FileWrite[]): Promise<FileWrite[]> {
  const left: FileWrite[] = [];
  for (const write of done.toReversed()) {
    try {
      await applyWrite(workspace, { ...write, before: write.after, after: write.before });
    } catch {
      // The caller reports the path; the error of the first write explains this one too.
      left.push(write);
    }
  }
  return left;
}
