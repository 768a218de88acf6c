import { closeSync, openSync } from "node:fs";
import { devNull } from "node:os";
import { codeOf, UserError } from "../errors.ts";

/**
 * Files that can still be opened when the last session was: for parts of the program that load late, stored files, and
 * the pipes and connections of a few turns at once.
 */
const spareFiles = 40;

/**
 * Checks that enough files can be opened for one more session. Opening them is the only way to know on every system:
 * the limit may be the process's or the machine's. Throws {@link UserError}.
 */
export function expectSpareFiles(): void {
  const opened: number[] = [];
  try {
    while (opened.length < spareFiles) opened.push(openSync(devNull, "r"));
  } catch (error) {
    if (!isOutOfFiles(error)) throw error;
    throw new UserError(
      `No further session can be opened: too many files are open (${codeOf(error)}). Close some sessions, or raise the limit (ulimit -n) and start the agent again.`,
      { cause: error },
    );
  } finally {
    for (const file of opened) closeSync(file);
  }
}

/** Whether the process or the machine has no files left to open. */
function isOutOfFiles(error: unknown): boolean {
  return codeOf(error) === "EMFILE" || codeOf(error) === "ENFILE";
}
