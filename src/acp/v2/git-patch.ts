import { structuredPatch } from "diff";
import { toSlashes } from "../../base/files/paths.ts";

/** Limits of the diff: two unrelated texts of 5,000 lines would block the process for seconds. */
const comparison = { context: 3, timeout: 200, maxEditLength: 4_000 };
const fileMode = "100644";

export interface TextChange {
  /** Absolute. */
  path: string;
  /** Absolute path before a move. */
  fromPath?: string;
  /** null if the file did not exist before, or does not exist after. */
  before: string | null;
  after: string | null;
  /** Number of the texts' first line in the file, if they are only a part of it. */
  firstLine?: number;
}

/**
 * Creates a git patch with absolute paths, `/` as their separator, and without prefixes. Returns undefined if the texts
 * differ too much. `separator` is that of the system.
 */
export function gitPatch(change: TextChange, separator?: string): string | undefined {
  const { path, fromPath = path, before, after, firstLine = 1 } = change;
  const patch = structuredPatch("", "", before ?? "", after ?? "", "", "", comparison);
  if (patch === undefined) return undefined;
  const offset = firstLine - 1;
  const [from, to] = [quoteName(fromPath, separator), quoteName(path, separator)];
  const lines = [`diff --git ${from} ${to}`];
  if (from !== to) lines.push(`rename from ${from}`, `rename to ${to}`);
  if (before === null) lines.push(`new file mode ${fileMode}`);
  if (after === null) lines.push(`deleted file mode ${fileMode}`);
  if (patch.hunks.length > 0)
    lines.push(`--- ${before === null ? "/dev/null" : from}`, `+++ ${after === null ? "/dev/null" : to}`);
  for (const { oldStart, oldLines, newStart, newLines, lines: changed } of patch.hunks)
    lines.push(
      `@@ -${formatRange(oldStart + offset, oldLines)} +${formatRange(newStart + offset, newLines)} @@`,
      ...changed,
    );
  return `${lines.join("\n")}\n`;
}

/** Formats a hunk range. An empty range starts at the line before it. */
const formatRange = (start: number, lines: number): string => `${lines === 0 ? start - 1 : start},${lines}`;

/** Writes the name with slashes, and quotes one with special characters like git. */
function quoteName(path: string, separator?: string): string {
  const name = toSlashes(path, separator);
  return /["\\\p{Cc}]/u.test(name) ? JSON.stringify(name) : name;
}
