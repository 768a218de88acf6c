import { type FileState, type FileVersion, timeStepMs } from "./file-state.ts";

/** Maximum number of paths. Those that were seen least recently are forgotten. */
export const formerFilesLimit = 20_000;

type Identity = Pick<FileVersion, "inode" | "created">;

/**
 * Files that commands left or removed. NTFS gives a file that is made under a name that was free for less than 15
 * seconds the creation time of the file before, so that a new file looks old.
 */
export class FormerFiles {
  /** By path, least recently seen first. */
  readonly #files = new Map<string, Identity>();

  add(path: string, { inode, created }: Identity): void {
    this.#files.delete(path);
    this.#files.set(path, { inode, created });
    for (const [oldest] of this.#files) {
      if (this.#files.size <= formerFilesLimit) break;
      this.#files.delete(oldest);
    }
  }

  /** Whether the file was made after this time, although it has the creation time of an earlier file at its path. */
  isMadeAgain(path: string, { inode, created, changed }: FileState, after: number): boolean {
    const seen = this.#files.get(path);
    if (seen === undefined || changed < after - timeStepMs) return false;
    // The same file was moved away and back.
    return seen.created === created && seen.inode !== inode;
  }
}
