/** Contents of files that tools changed, kept by their SHA-256, so that a change can be shown again and undone. */
export interface Snapshots {
  /** Keeps the bytes and returns their hash, or undefined when they are too large to keep. */
  save(bytes: Uint8Array): Promise<string | undefined>;
  load(hash: string): Promise<Buffer | undefined>;
}
