import { sleep } from "../async.ts";
import { codeOf } from "../errors.ts";

/** Pauses before each further attempt. Virus scanners and indexers hold a new file for some milliseconds. */
const pausesMs = [10, 20, 40, 80, 160, 320, 640];
const inUse = new Set<unknown>(["EPERM", "EACCES", "EBUSY"]);

export interface RetrySystem {
  readonly platform: NodeJS.Platform;
  readonly sleep: (delayMs: number) => Promise<void>;
}

const thisSystem: RetrySystem = { platform: process.platform, sleep };

/**
 * Runs a rename or a removal. Windows refuses these while another program has the file open, so there it tries
 * again for about a second. Rejects with the system error.
 */
export async function retryInUse<T>(
  change: () => T | Promise<T>,
  { platform, sleep }: RetrySystem = thisSystem,
): Promise<T> {
  for (const pauseMs of platform === "win32" ? pausesMs : []) {
    try {
      return await change();
    } catch (error) {
      if (!inUse.has(codeOf(error))) throw error;
      await sleep(pauseMs);
    }
  }
  return change();
}
