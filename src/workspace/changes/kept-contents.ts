import { snapshotLimitBytes } from "../files/snapshot.ts";
import { type FileState, isSameState, readContent, timeStepMs } from "./file-state.ts";

/** Maximum bytes of contents in memory, per folder. */
export const keptContentsLimitBytes = 64 * 1024 * 1024;

interface Kept {
  readonly state: FileState;
  readonly bytes: Buffer;
  /** The file changed just before it was read, so that a later change may have the same time. */
  readonly isRecent: boolean;
}

/** Contents of files that git does not have, in memory until a command changes them. */
export class KeptContents {
  #kept = new Map<string, Kept>();

  /**
   * Reads files that are new or have changed, the smaller ones first until the limit, and drops all others. Files in
   * `first` come before the others.
   */
  update(states: ReadonlyMap<string, FileState>, first: ReadonlySet<string>): ReadonlyMap<string, Buffer> {
    const kept = new Map<string, Kept>();
    let bytesLeft = keptContentsLimitBytes;
    const order = [...states].sort(([onePath, one], [otherPath, other]) => {
      return Number(first.has(otherPath)) - Number(first.has(onePath)) || one.size - other.size;
    });
    for (const [path, state] of order) {
      if (state.size > snapshotLimitBytes || state.size > bytesLeft) continue;
      const known = this.#kept.get(path);
      const isKnown = known !== undefined && !known.isRecent && isSameState(known.state, state);
      const one = isKnown ? known : read(path, state);
      if (one === undefined) continue;
      kept.set(path, one);
      bytesLeft -= one.bytes.length;
    }
    this.#kept = kept;
    return new Map([...kept].map(([path, { bytes }]) => [path, bytes]));
  }
}

function read(path: string, state: FileState): Kept | undefined {
  const readAt = Date.now();
  const bytes = readContent(path, state);
  return bytes && { state, bytes, isRecent: state.changed >= readAt - timeStepMs };
}
