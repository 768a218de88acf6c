import { structuredPatch } from "diff";
import type { StructuredPatchHunk } from "diff";
import { countLines, takeHead } from "./output-limit.ts";

export interface Comparison {
  /** Lines added and removed. */
  readonly additions: number;
  readonly deletions: number;
  /** First line of the new text that differs, from 1. */
  readonly firstLine: number;
  /** The changed places in the new text, as `12: text`, each with two lines of context. */
  readonly excerpt: string;
}

/** Without a limit, two unrelated texts of 5,000 lines would block the process for seconds. */
const comparisonLimitMs = 200;
const editLengthLimit = 4_000;
const contextLines = 2;
const excerptLimitLines = 30;
const excerptLineLimit = 200;

/** Compares two texts line by line; null means "no such file". Counts all lines if the texts are very different. */
export function compareTexts(before: string | null, after: string): Comparison {
  const hunks = before === null ? undefined : createHunks(before, after);
  if (hunks === undefined) return compareWhole(before ?? "", after);
  return {
    additions: countMarked(hunks, "+"),
    deletions: countMarked(hunks, "-"),
    firstLine: firstChangedLine(hunks),
    excerpt: createExcerpt(hunks),
  };
}

function createHunks(before: string, after: string): StructuredPatchHunk[] | undefined {
  const start = commonPrefixLength(before, after);
  const end = commonSuffixLength(before, after, start);
  const [old = "", fresh = ""] = [before, after].map((text) => text.slice(start, text.length - end));
  const patch = structuredPatch("", "", old, fresh, "", "", {
    context: contextLines,
    timeout: comparisonLimitMs,
    maxEditLength: editLengthLimit,
  });
  const linesAbove = countLines(after.slice(0, start));
  return patch?.hunks.map((hunk) => ({ ...hunk, newStart: hunk.newStart + linesAbove }));
}

/** Length of the common first lines, without the context lines of a change. */
function commonPrefixLength(before: string, after: string): number {
  let at = 0;
  while (at < before.length && at < after.length && before.charCodeAt(at) === after.charCodeAt(at)) at++;
  for (let lines = 0; lines <= contextLines; lines++) {
    const newline = at === 0 ? -1 : after.lastIndexOf("\n", at - 1);
    if (newline === -1) return 0;
    at = newline;
  }
  return at + 1;
}

/** Length of the common last lines, without the context lines and without the common beginning. */
function commonSuffixLength(before: string, after: string, beginning: number): number {
  const most = Math.min(before.length, after.length) - beginning;
  let length = 0;
  while (length < most && before.at(-1 - length) === after.at(-1 - length)) length++;
  let from = after.length - length;
  for (let lines = 0; lines <= contextLines; lines++) {
    const newline = after.indexOf("\n", from);
    if (newline === -1) return 0;
    from = newline + 1;
  }
  return after.length - from;
}

function compareWhole(before: string, after: string): Comparison {
  return { additions: countLines(after), deletions: countLines(before), firstLine: 1, excerpt: "" };
}

function countMarked(hunks: readonly StructuredPatchHunk[], mark: string): number {
  return hunks.reduce((sum, { lines }) => sum + lines.filter((line) => line.startsWith(mark)).length, 0);
}

function firstChangedLine([first]: readonly StructuredPatchHunk[]): number {
  if (first === undefined) return 1;
  const unchanged = first.lines.findIndex((line) => !line.startsWith(" "));
  return Math.max(1, first.newStart + unchanged);
}

function createExcerpt(hunks: readonly StructuredPatchHunk[]): string {
  const blocks = hunks.map(numberLines).filter((lines) => lines.length > 0);
  const lines = blocks.flatMap((place, index) => (index === 0 ? place : ["…", ...place]));
  if (lines.length <= excerptLimitLines) return lines.join("\n");
  return [...lines.slice(0, excerptLimitLines), `… (${lines.length - excerptLimitLines} more lines)`].join(
    "\n",
  );
}

function numberLines({ newStart, lines }: StructuredPatchHunk): string[] {
  const present = lines.filter((line) => line.startsWith(" ") || line.startsWith("+"));
  return present.map((line, index) => `${newStart + index}: ${shortenLine(line.slice(1))}`);
}

function shortenLine(line: string): string {
  const text = line.replace(/\r$/, "");
  return text.length <= excerptLineLimit ? text : `${takeHead(text, excerptLineLimit)}…`;
}
