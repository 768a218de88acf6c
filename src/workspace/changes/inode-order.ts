import { closeSync, fstatSync, openSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { randomUuid } from "../../base/text/hash.ts";

/**
 * Returns an inode above those of the files in a folder and below those of files that are made later; undefined where
 * inodes have no order. They have one on APFS. There, a program that sets the time of modification of a file to one
 * before its creation, such as `tar -x`, sets the time of creation too.
 */
export function takeInode(folder: string, platform = process.platform): number | undefined {
  if (platform !== "darwin") return undefined;
  const path = join(tmpdir(), `inode-${randomUuid()}`);
  try {
    const file = openSync(path, "wx", 0o600);
    try {
      const { dev, ino } = fstatSync(file);
      return dev === statSync(folder).dev ? ino : undefined;
    } finally {
      closeSync(file);
      rmSync(path, { force: true });
    }
  } catch {
    // The temporary folder is full, or the folder is gone: times of creation have to do.
    return undefined;
  }
}
