import type { Dirent } from "node:fs";
import { opendir, stat } from "node:fs/promises";
import { join } from "node:path";
import type { Range } from "./line-window.ts";
import { ToolFailure } from "../tool.ts";
import type { ToolResult } from "../tool.ts";

/** Entries held in memory and sorted. */
const entryLimit = 20_000;

/** Lists entries of a folder, with a note on how to continue. */
export async function listFolder(
  path: string,
  { first, count, bytes }: Range,
  signal: AbortSignal,
): Promise<ToolResult> {
  const { names, isComplete } = await readEntries(path, signal);
  if (names.length === 0) return { status: "completed", output: "(The folder is empty.)" };
  const shown = takeFitting(names.slice(first - 1, first - 1 + count), bytes);
  if (shown.length === 0) {
    throw new ToolFailure(
      `There is no entry ${first}: the last one is ${names.length}. Use a smaller offset.`,
    );
  }
  const total = isComplete ? `${names.length}` : `more than ${entryLimit}`;
  return {
    status: "completed",
    output: shown.join("\n"),
    notes: entriesNotice(first, shown.length, names.length, total),
  };
}

function entriesNotice(first: number, shown: number, known: number, total: string): string {
  if (shown === known && total === `${known}`) return `(All entries: ${total}.)`;
  const last = first + shown - 1;
  return `(Entries ${first}-${last} of ${total}.${last < known ? ` Go on with offset ${last + 1}.` : ""})`;
}

/** Reads sorted names up to the limit, folders with a slash. */
async function readEntries(
  path: string,
  signal: AbortSignal,
): Promise<{ names: string[]; isComplete: boolean }> {
  const names: string[] = [];
  for await (const entry of await opendir(path)) {
    signal.throwIfAborted();
    if (names.length === entryLimit) return { names: names.sort(), isComplete: false };
    names.push(await displayName(path, entry));
  }
  return { names: names.sort(), isComplete: true };
}

async function displayName(folder: string, entry: Dirent): Promise<string> {
  if (entry.isDirectory()) return `${entry.name}/`;
  return entry.isSymbolicLink() && (await isLinkToFolder(join(folder, entry.name)))
    ? `${entry.name}/`
    : entry.name;
}

async function isLinkToFolder(link: string): Promise<boolean> {
  try {
    return (await stat(link)).isDirectory();
  } catch {
    // A broken or unreadable link is shown by its name.
    return false;
  }
}

/** Returns the first names that fit, at least one. */
function takeFitting(names: readonly string[], limitBytes: number): string[] {
  let bytes = -1;
  const tooMany = names.findIndex((name) => (bytes += Buffer.byteLength(name) + 1) > limitBytes);
  return tooMany === -1 ? [...names] : names.slice(0, Math.max(1, tooMany));
}
