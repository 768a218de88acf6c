interface SeenFile {
  /** SHA-256 of the content, hex. */
  readonly hash: string;
  readonly isWhole: boolean;
}

/** Contents of files as the model of this session last saw or wrote them, by absolute real path. */
export class SeenFiles {
  readonly #files = new Map<string, SeenFile>();

  /** Returns the hash of the content that the model last saw, whole or in part. */
  get(path: string): string | undefined {
    return this.#files.get(path)?.hash;
  }

  /** Whether the file may be replaced as a whole by what the model knows. */
  isWhole(path: string): boolean {
    return this.#files.get(path)?.isWhole === true;
  }

  /** Notes that the model knows that the file does not exist. */
  forget(path: string): void {
    this.#files.delete(path);
  }

  /** Notes that the model read or wrote the file. */
  set(path: string, hash: string): void {
    this.#files.set(path, { hash, isWhole: true });
  }

  /** Notes that the model saw some lines of the file. */
  setPart(path: string, hash: string): void {
    if (this.get(path) !== hash) this.#files.set(path, { hash, isWhole: false });
  }

  /** Notes a change of the model: of a file that it knew in part, it knows the new content in part. */
  setChanged(path: string, hash: string, before: { path: string; hash: string } | undefined): void {
    const isWhole =
      before === undefined || (this.get(before.path) === before.hash && this.isWhole(before.path));
    this.#files.set(path, { hash, isWhole });
  }
}
