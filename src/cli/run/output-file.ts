import { randomUUID } from "node:crypto";
import { realpath, rename, rm, stat, writeFile } from "node:fs/promises";
import { retryInUse } from "../../base/files/retry-in-use.ts";

/** Replaces a file atomically, or the target of a link. Keeps its mode. */
export async function writeOutputFile(path: string, text: string): Promise<void> {
  const target = await realpath(path).catch(() => path);
  const found = await stat(target).catch(() => undefined);
  // A device or a pipe, such as /dev/stderr, cannot be replaced.
  if (found !== undefined && !found.isFile()) return writeFile(target, text);
  const temporary = `${target}.${randomUUID()}.tmp`;
  try {
    await writeFile(temporary, text, { flush: true, flag: "wx", ...(found && { mode: found.mode }) });
    await retryInUse(() => rename(temporary, target));
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
}
