import type { Files } from "../files/files.ts";
import type { AuthorChanges } from "./recent-changes.ts";

/** Returns files whose writes are noted as changes of this author only, even if the given files note those of another one. */
export function noteWrites(files: Files, changes: AuthorChanges): Files {
  return new NotedFiles(files instanceof NotedFiles ? files.unnoted : files, changes);
}

class NotedFiles implements Files {
  readonly unnoted: Files;
  readonly #changes: AuthorChanges;

  constructor(unnoted: Files, changes: AuthorChanges) {
    this.unnoted = unnoted;
    this.#changes = changes;
  }

  read(path: string) {
    return this.unnoted.read(path);
  }

  lock<T>(paths: readonly string[], task: () => Promise<T>): Promise<T> {
    return this.unnoted.lock(paths, task);
  }

  async write(path: string, bytes: Uint8Array, expected: string | null, newMode?: number) {
    const written = await this.unnoted.write(path, bytes, expected, newMode);
    await this.#changes.note([{ path, after: written.hash }]);
    return written;
  }

  async remove(path: string, expected: string): Promise<void> {
    await this.unnoted.remove(path, expected);
    await this.#changes.note([{ path, after: null }]);
  }
}
