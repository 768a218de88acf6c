import { closeSync, constants, fstatSync, lstatSync, openSync, readFileSync, readlinkSync } from "node:fs";
import type { Stats } from "node:fs";
import { openForReading } from "../files/files.ts";

/** Metadata of a regular file or a symbolic link, without following the link. Times in milliseconds since 1970. */
export interface FileState {
  readonly isLink: boolean;
  readonly size: number;
  /** Permission bits. */
  readonly mode: number;
  readonly inode: number;
  readonly modified: number;
  /** Time of the last change of content or metadata. Programs cannot set it. */
  readonly changed: number;
  /** Number of hard links. */
  readonly names: number;
  /** Equals `changed` where the file system does not record it. */
  readonly created: number;
}

/** A file as it was before or after a command. */
export interface FileVersion {
  /** The content, or the target of a link; undefined if it was not kept. */
  readonly bytes: Buffer | undefined;
  readonly isLink: boolean;
  /** Permission bits; undefined if only the default is known. */
  readonly mode: number | undefined;
  /** Identifies a file that was moved, modulo 2^32. */
  readonly inode: number | undefined;
}

/** A change within this time before a check may have left the same times: file systems count in steps. */
export const timeStepMs = 20;

/** Returns undefined if the path is neither a file nor a link, or cannot be read. */
export function readState(path: string): FileState | undefined {
  try {
    const found = lstatSync(path, { throwIfNoEntry: false });
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
  const now = toState(fstatSync(file));
  return now !== undefined && isSameState(now, state);
}

function toState(found: Stats): FileState | undefined {
  const isLink = found.isSymbolicLink();
  if (!isLink && !found.isFile()) return undefined;
  return {
    isLink,
    size: found.size,
    mode: found.mode & 0o777,
    inode: found.ino,
    names: found.nlink,
    modified: found.mtimeMs,
    changed: found.ctimeMs,
    created: found.birthtimeMs > 0 ? found.birthtimeMs : found.ctimeMs,
  };
}
