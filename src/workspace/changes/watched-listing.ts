import type { FolderWatch } from "./folder-watch.ts";
import type { GitFiles, GitListing, IndexCopy } from "./git-files.ts";

/** Lists the files that differ from git's index; before a command, from the last listing if nothing else changed. */
export class WatchedListing {
  readonly #git: GitFiles;
  /** Undefined where changes cannot be watched: then each listing is complete. */
  readonly #watch: FolderWatch | undefined;
  #last: { readonly index: IndexCopy | undefined; readonly listing: GitListing } | undefined;

  constructor(git: GitFiles, watch: FolderWatch | undefined) {
    this.#git = git;
    this.#watch = watch;
  }

  async listBefore(index: IndexCopy | undefined): Promise<GitListing> {
    const listing = (await this.#listAgain(index)) ?? (await this.#git.list(index));
    // While the command runs.
    void this.#arm();
    return listing;
  }

  async listAfter(index: IndexCopy | undefined): Promise<GitListing> {
    await this.#arm();
    this.#last = undefined;
    await this.#watch?.reset();
    const listing = await this.#git.list(index);
    this.#last = { index, listing };
    return listing;
  }

  close(): void {
    this.#watch?.close();
  }

  /** Adds the paths that changed since the last listing. Undefined if the last listing cannot be used. */
  async #listAgain(index: IndexCopy | undefined): Promise<GitListing | undefined> {
    const last = this.#last;
    if (last === undefined || last.index !== index) return undefined;
    const changed = await this.#watch?.listChanges();
    if (changed === undefined || this.#last !== last) return undefined;
    if (changed.size === 0) return last.listing;
    const known = new Set([...last.listing.tracked, ...last.listing.untracked]);
    const others = [...changed].filter((path) => !known.has(path));
    try {
      return {
        ...last.listing,
        tracked: [...last.listing.tracked, ...(await this.#git.omitIgnored(others))],
      };
    } catch {
      // A path that git does not accept, such as one in another repository.
      return undefined;
    }
  }

  async #arm(): Promise<void> {
    const index = this.#git.readIndex();
    await this.#watch?.arm(index, () => this.#git.listFolders());
  }
}
