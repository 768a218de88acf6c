import { mkdtemp, readdir, rm } from "node:fs/promises";
import { hostname, tmpdir } from "node:os";
import { join } from "node:path";
import { codeOf } from "../../base/errors.ts";

/** Containers may share the folder, but not their process ids. */
const namePrefix = (): string => `fairlead-run-${hostname()}-`;

/**
 * Creates the folder of an ephemeral session. Its name contains the process id, so that a later run can remove it if
 * this process and its server were killed.
 */
export async function createEphemeralFolder(): Promise<string> {
  await removeLeftFolders();
  return mkdtemp(join(tmpdir(), `${namePrefix()}${process.pid}-`));
}

export function removeEphemeralFolder(folder: string): Promise<void> {
  return rm(folder, { recursive: true, force: true });
}

/** Removes the folders of processes that have ended. */
async function removeLeftFolders(): Promise<void> {
  const prefix = namePrefix();
  const names = await readdir(tmpdir()).catch(() => []);
  for (const name of names) {
    if (!name.startsWith(prefix)) continue;
    const pid = /^(\d+)-\w+$/.exec(name.slice(prefix.length))?.[1];
    // Folders of other users cannot be removed.
    if (pid !== undefined && !isRunning(Number(pid)))
      await removeEphemeralFolder(join(tmpdir(), name)).catch(() => {});
  }
}

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return codeOf(error) !== "ESRCH";
  }
}
