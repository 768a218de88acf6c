/** The disk as tools see it. All paths are absolute real paths. */
export interface Files {
  /** Bytes of a regular file with their SHA-256 (hex). Throws system errors such as ENOENT. */
  read(path: string): Promise<{ bytes: Buffer; hash: string }>;
  /**
   * Replaces or creates a file atomically, keeping its mode; makes missing folders.
   * `expected` is the hash it must still have, null that it must not exist; otherwise {@link StaleFile} is thrown.
   */
  write(path: string, bytes: Uint8Array, expected: string | null): Promise<{ hash: string }>;
  remove(path: string, expected: string): Promise<void>;
  /** Runs the task when no other task on any of these files runs. */
  lock<T>(paths: readonly string[], task: () => Promise<T>): Promise<T>;
}

export class StaleFile extends Error {
  override readonly name = "StaleFile";
}
