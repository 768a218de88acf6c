import { closeSync, openSync } from "node:fs";
import { devNull } from "node:os";
import { codeOf, UserError } from "../errors.ts";

/**
 * File descriptors to leave free for modules that load late, stored files, and the pipes and connections of a few
 * turns.
 */
const spareFileCount = 40;

/**
 * Checks that enough files can be opened for another session. Throws {@link UserError}.
 * Opens them to find out: the limit may belong to the process or to the machine, and no portable call reports it.
 */
export function expectSpareFiles(): void {
  const opened: number[] = [];
  try {
    while (opened.length < spareFileCount) opened.push(openSync(devNull, "r"));
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

function isOutOfFiles(error: unknown): boolean {
  return codeOf(error) === "EMFILE" || codeOf(error) === "ENFILE";
}
