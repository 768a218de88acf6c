import { closeSync, constants, fstatSync, lstatSync, openSync, readFileSync, readlinkSync } from "node:fs";
import type { BigIntStats } from "node:fs";
import { openForReading } from "../files/files.ts";

/** Metadata of a regular file or a symbolic link, without following the link. Times in milliseconds since 1970. */
export interface FileState {
  readonly isLink: boolean;
  readonly size: number;
  /** Permission bits. */
  readonly mode: number;
  /** The lower 53 of its 64 bits. */
  readonly inode: number;
  readonly modified: number;
  /** Time of the last change of content or metadata. Programs cannot set it, except on FAT, which does not record it. */
  readonly changed: number;
  /** Number of hard links. */
  readonly names: number;
  /**
   * In whole milliseconds; the time of `changed` where the file system does not record it. NTFS gives a file the time of
   * the one that had its name up to 15 seconds before.
   */
  readonly created: number;
}

/** A file as it was before or after a command. */
export interface FileVersion {
  /** The content, or the target of a link; undefined if it was not kept. */
  readonly bytes: Buffer | undefined;
  readonly isLink: boolean;
  /** Permission bits; undefined if only the default is known. */
  readonly mode: number | undefined;
  /** Identifies a file that was moved. From git's index modulo `inodeRange`, and 0 from that of Git for Windows. */
  readonly inode: number | undefined;
  /** As in {@link FileState}; undefined if it is not known. */
  readonly created: number | undefined;
}

/** Git's index has the lower half of an inode number. */
export const inodeRange = 2 ** 32;

/** A change within this time before a check may have left the same times: file systems count in steps. */
export const timeStepMs = 20;

/** Returns undefined if the path is neither a file nor a link, or cannot be read. */
export function readState(path: string): FileState | undefined {
  try {
    const found = lstatSync(path, { throwIfNoEntry: false, bigint: true });
    return found && toState(found);
  } catch {
    // A folder on the way is closed or has become a file.
    return undefined;
  }
}

export function isSameState(one: FileState, other: FileState): boolean {
  return (
    one.size === other.size &&
    one.modified === other.modified &&
    one.changed === other.changed &&
    one.inode === other.inode &&
    one.mode === other.mode &&
    one.isLink === other.isLink
  );
}

/** Whether the permission bits differ. Git's index knows only whether a file is executable: its modes are 755 and undefined. */
export function hasOtherMode(before: FileVersion, after: FileVersion): boolean {
  if (after.mode === undefined || process.platform === "win32") return false;
  if (before.mode !== undefined && before.mode !== 0o755) return before.mode !== after.mode;
  return ((before.mode ?? 0) & 0o100) !== (after.mode & 0o100);
}

/** Reads the content that belongs to the state. Returns undefined if the file has changed or cannot be read. */
export function readContent(path: string, state: FileState): Buffer | undefined {
  try {
    if (state.isLink) return readlinkSync(path, { encoding: "buffer" });
    const file = openSync(path, openForReading | (constants.O_NOFOLLOW ?? 0));
    try {
      if (!hasState(file, state)) return undefined;
      const bytes = readFileSync(file);
      return hasState(file, state) ? bytes : undefined;
    } finally {
      closeSync(file);
    }
  } catch {
    // Removed, replaced or closed in the meantime.
    return undefined;
  }
}

function hasState(file: number, state: FileState): boolean {
  const now = toState(fstatSync(file, { bigint: true }));
  return now !== undefined && isSameState(now, state);
}

/** Returns undefined if it is neither a file nor a link. */
export function toState(found: BigIntStats): FileState | undefined {
  const isLink = found.isSymbolicLink();
  if (!isLink && !found.isFile()) return undefined;
  const { birthtimeNs, mtimeNs, ctimeNs } = found;
  // Windows has 1601 for a time that the file system does not record.
  const changed = ctimeNs > 0n ? ctimeNs : birthtimeNs > mtimeNs ? birthtimeNs : mtimeNs;
  return {
    isLink,
    size: Number(found.size),
    mode: Number(found.mode & 0o777n),
    inode: Number(BigInt.asUintN(inodeBits, found.ino)),
    names: Number(found.nlink),
    modified: toMilliseconds(mtimeNs),
    changed: toMilliseconds(changed),
    created: Number((birthtimeNs > 0n ? birthtimeNs : changed) / 1_000_000n),
  };
}

/** A number holds this many bits exactly. NTFS reuses the lower 48 bits and counts that in the others. */
const inodeBits = 53;

const toMilliseconds = (nanoseconds: bigint): number => Number(nanoseconds) / 1e6;
