import { type FSWatcher, existsSync, renameSync, watch } from "node:fs";
import { join } from "node:path";

/** Entries of git's folder that would redirect it or name programs, and that mounts cannot keep from being created. */
export const redirections: readonly string[] = ["commondir", "config.worktree"];
export const blockedEnding = ".blocked";

/** Renames files that would redirect git as soon as they appear, while a confined command runs. */
export class RedirectionGuard {
  readonly #watchers: FSWatcher[];
  readonly #known: ReadonlySet<string>;
  readonly #onRenamed: (path: string) => void;
  /** Paths of the files that were renamed. */
  readonly renamed = new Set<string>();

  /** `folders` are those of repositories; `known` are files that existed before the command. */
  constructor(folders: readonly string[], known: ReadonlySet<string>, onRenamed: (path: string) => void) {
    this.#known = known;
    this.#onRenamed = onRenamed;
    this.#watchers = folders.flatMap((folder) => this.#watch(folder));
  }

  stop(): void {
    for (const watcher of this.#watchers) watcher.close();
  }

  /** A folder that cannot be watched is checked at the command's end only. */
  #watch(folder: string): FSWatcher[] {
    try {
      const watcher = watch(folder, { persistent: false }, (_event, name) => {
        if (name !== null && redirections.includes(name)) this.#block(join(folder, name));
      });
      return [watcher.on("error", () => watcher.close())];
    } catch {
      return [];
    }
  }

  #block(path: string): void {
    if (this.#known.has(path) || !existsSync(path)) return;
    try {
      renameSync(path, `${path}${blockedEnding}`);
    } catch {
      // The command renamed or removed it meanwhile; the check at its end sees what is left.
      return;
    }
    if (!this.renamed.has(path)) this.#onRenamed(path);
    this.renamed.add(path);
  }
}
