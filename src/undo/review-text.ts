import { formatHunk } from "../base/text/line-diff.ts";
import { excerpt } from "../base/text/excerpt.ts";
import type { ChangesPart, FileChange, ListedChange } from "../message/part.ts";
import type { Snapshots } from "../workspace/files/snapshot.ts";
import { formatPath } from "../workspace/paths.ts";
import { loadLines, type NumberedItem, numberItems } from "./change-list.ts";
import { defaultMode } from "./net-changes.ts";

/** A change that was not dropped. */
export interface RefusedItem {
  readonly item: NumberedItem;
  readonly reason: string;
}

/** Maximum number of changes in a list. */
const itemLimit = 200;
/** Limits of what the model reads of dropped changes. */
const modelLineLimit = 60;
const modelLineLength = 200;

/** Describes the card: its title, its files, and their numbers for clients that print them. */
export function describeCard(
  { turn, files }: Pick<ChangesPart, "turn" | "files">,
  paths: readonly string[],
  cwd: string,
): Pick<ChangesPart, "title" | "paths" | "metadata"> {
  const items = numberItems(files);
  const numbered = files
    .filter(({ change }) => paths.includes(change.path))
    .map((file) => ({
      path: formatPath(cwd, file.change.path),
      ...(file.isEdited && { isEdited: true }),
      items: items.filter((item) => item.file === file).map((item) => describeForClient(item, cwd)),
    }));
  return { title: `Changes of ${describeScope(turn)}`, paths: [...paths], metadata: { files: numbered } };
}

function describeForClient(numbered: NumberedItem, cwd: string) {
  const { number, item } = numbered;
  const { kind, line, isContested } = item;
  const place = line === undefined ? "" : `line ${line}, `;
  return {
    number,
    kind,
    label: `${place}${describeKind(numbered, cwd)}`,
    ...(isContested && { isContested }),
  };
}

/** Lists changes by number. Markdown. */
export function describeChanges(
  { turn, isOlder, files }: Pick<ChangesPart, "turn" | "isOlder" | "files">,
  paths: readonly string[],
  cwd: string,
): string {
  const listed = files.filter(({ change }) => paths.includes(change.path));
  const items = numberItems(files).filter(({ file }) => listed.includes(file));
  const lines = items.slice(0, itemLimit).map((item) => {
    const note = item.item.isContested ? "; edited since, so `/drop` leaves it" : "";
    return `- ${describeItem(item, cwd)}${note}`;
  });
  const more = items.length - lines.length;
  const edited = listed.filter(({ isEdited }) => isEdited).map(({ change }) => formatPath(cwd, change.path));
  const sections = [
    `**Changes of ${describeScope(turn)}**: ${countFiles(listed)}`,
    [...lines, ...(more > 0 ? [`- … and ${more} more; \`/changes FILE\` lists those of one file`] : [])].join(
      "\n",
    ),
    edited.length === 0
      ? ""
      : `Edited since, by ${isOlder ? "you, a later turn" : "you"} or another program: ${edited.join(", ")}. These edits stay, and are not in the list.`,
    "`/drop 1` undoes one change, `/drop 1 3` several, `/drop FILE` those of a file, `/drop all` all of them.",
  ];
  return sections.filter((section) => section !== "").join("\n\n");
}

/** Describes a change in one line, with its number. */
function describeItem(numbered: NumberedItem, cwd: string): string {
  const { number, file, item } = numbered;
  const place = item.line === undefined ? "" : `, line ${item.line}`;
  return `\`${number}\` ${formatPath(cwd, file.change.path)}${place}: ${describeKind(numbered, cwd)}`;
}

function describeKind({ file, item }: NumberedItem, cwd: string): string {
  const { mode = defaultMode, newMode = mode, fromPath = "" } = file.change;
  switch (item.kind) {
    case "hunk":
      return `+${item.additions} -${item.deletions}`;
    case "created":
      return `created, +${item.additions}`;
    case "deleted":
      return `deleted, -${item.deletions}`;
    case "renamed":
      return `moved from ${formatPath(cwd, fromPath)}`;
    case "mode":
      return `mode changed from ${mode.toString(8)} to ${newMode.toString(8)}`;
    case "link":
      return "symbolic link changed";
    case "binary":
      return "changed, not as text";
    case "not-stored":
      return "changed, too large to show or to drop";
  }
}

export function describeScope(turn: string | undefined): string {
  return turn === undefined ? "the session" : `the turn "${turn}"`;
}

/** Reports what a drop changed and what it left. Markdown. */
export function describeDrop(
  dropped: readonly NumberedItem[],
  refused: readonly RefusedItem[],
  cwd: string,
): string {
  const sections = [
    dropped.length === 0
      ? "Nothing was dropped."
      : `Dropped:\n\n${dropped.map((item) => `- ${describeItem(item, cwd)}`).join("\n")}`,
    refused.length === 0
      ? ""
      : `Not dropped:\n\n${refused.map(({ item, reason }) => `- ${describeItem(item, cwd)}: ${reason}`).join("\n")}`,
    refused.length === 0 ? "" : "Edit these places by hand, or send `/changes` to see what is there now.",
    dropped.length === 0 ? "" : afterDrop,
  ];
  return sections.filter((section) => section !== "").join("\n\n");
}

export const afterDrop =
  "The model is informed with your next message. Until then, `/redo` restores the changes.";

/** Describes applied changes for the model, as short diffs. */
export async function describeForModel(
  changes: readonly FileChange[],
  snapshots: Pick<Snapshots, "load">,
  cwd: string,
): Promise<string> {
  const blocks: string[] = [];
  let linesLeft = modelLineLimit;
  for (const change of changes) {
    const lines = linesLeft > 0 ? await loadLines(change, snapshots) : undefined;
    const diff = lines?.hunks.flatMap((hunk) => formatHunk(hunk, lines.old, lines.fresh)) ?? [];
    const shown = diff.slice(0, linesLeft).map((line) => excerpt(line, modelLineLength));
    linesLeft -= shown.length;
    if (shown.length < diff.length) shown.push("…");
    blocks.push([`${formatPath(cwd, change.path)}: ${describeOperation(change)}`, ...shown].join("\n"));
  }
  return blocks.join("\n");
}

function describeOperation({ before, after, newMode }: FileChange): string {
  if (before === null) return "the file is there again";
  if (after === null) return "the file is removed";
  return before === after && newMode !== undefined ? `its mode is ${newMode.toString(8)}` : "changed";
}

function countFiles(files: readonly ListedChange[]): string {
  const additions = files.reduce((sum, file) => sum + file.change.additions, 0);
  const deletions = files.reduce((sum, file) => sum + file.change.deletions, 0);
  return `${files.length} ${files.length === 1 ? "file" : "files"}, +${additions} -${deletions}`;
}
