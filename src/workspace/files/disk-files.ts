import type { Stats } from "node:fs";
import { sha256 } from "../../base/text/hash.ts";
import { once } from "../../base/async.ts";
import { UserError } from "../../base/errors.ts";
import type { DiskWrites, DiskWritesOptions } from "./disk-writes.ts";
import { type Files, readLimitBytes, withFileAt } from "./files.ts";

/** Creates file access to the disk, with a method to clean up after killed processes. */
export function openFiles(options: DiskWritesOptions = {}): DiskFiles {
  return new DiskFiles(options);
}

export class DiskFiles implements Files {
  /** Loaded with the first change. */
  readonly #writes: () => Promise<DiskWrites>;

  constructor(options: DiskWritesOptions) {
    this.#writes = once(async () => {
      const { DiskWrites } = await import("./disk-writes.ts");
      return new DiskWrites(options);
    });
  }

  /** Removes temporary files of killed processes. */
  async recover(): Promise<void> {
    await (await this.#writes()).recover();
  }

  async read(path: string): Promise<{ bytes: Buffer; hash: string }> {
    return withFileAt(path, async (file) => {
      assertReadable(path, await file.stat());
      const bytes = await file.readFile();
      return { bytes, hash: sha256(bytes) };
    });
  }

  async write(
    path: string,
    bytes: Uint8Array,
    expected: string | null,
    newMode?: number,
  ): Promise<{ hash: string }> {
    return (await this.#writes()).write(path, bytes, expected, newMode);
  }

  async remove(path: string, expected: string): Promise<void> {
    await (await this.#writes()).remove(path, expected);
  }

  async lock<T>(paths: readonly string[], task: () => Promise<T>): Promise<T> {
    return (await this.#writes()).lock(paths, task);
  }
}

function assertReadable(path: string, found: Stats): void {
  if (!found.isFile()) throw new UserError(`${path} is not a regular file.`);
  if (found.size <= readLimitBytes) return;
  throw new UserError(`${path} has ${found.size} bytes; the limit is ${readLimitBytes} bytes.`);
}
