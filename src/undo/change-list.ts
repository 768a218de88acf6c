import {
  findHunks,
  findLineChanges,
  type Hunk,
  type LineChange,
  splitLines,
} from "../base/text/line-diff.ts";
import type { ChangeItem, FileChange, ListedChange } from "../message/part.ts";
import type { Snapshots } from "../workspace/files/snapshot.ts";
import { type NetChange, type StoredContent, toMergeableText } from "./net-changes.ts";

/** A change with its number in the list. */
export interface NumberedItem {
  readonly number: number;
  readonly file: ListedChange;
  readonly item: ChangeItem;
  /** Position among the hunks of its file, from 0. */
  readonly hunkIndex: number;
}

export function numberItems(files: readonly ListedChange[]): NumberedItem[] {
  let number = 0;
  return files.flatMap((file) => {
    let hunkIndex = -1;
    return file.items.map((item) => {
      if (item.kind === "hunk") hunkIndex++;
      return { number: ++number, file, item, hunkIndex };
    });
  });
}

/** The lines of a changed text file, with the hunks that the list numbers. */
export interface ChangedLines {
  readonly old: readonly string[];
  readonly fresh: readonly string[];
  readonly hunks: readonly Hunk[];
}

type Contents = Pick<Snapshots, "load">;

/** Creates the list of a file's changes that can be dropped alone. */
export async function listChange(net: NetChange, snapshots: Contents): Promise<ListedChange> {
  const { uncontested: _, isEdited, ...facts } = net;
  const lines = await loadLines(net, snapshots);
  const items =
    lines === undefined ? await listWhole(net, snapshots) : await listLines(net, lines, snapshots);
  const additions = items.reduce((sum, item) => sum + item.additions, 0);
  const deletions = items.reduce((sum, item) => sum + item.deletions, 0);
  const change = { ...facts, operation: getOperation(net), additions, deletions };
  return { change, items, ...(isEdited && { isEdited }) };
}

/** Loads the lines of a changed text file; undefined for all other changes. */
export async function loadLines(
  change: Pick<FileChange, "before" | "after" | "wasLink" | "isLink">,
  snapshots: Contents,
): Promise<ChangedLines | undefined> {
  if (change.wasLink || change.isLink) return undefined;
  const [old, fresh] = [await load(change.before, snapshots), await load(change.after, snapshots)];
  return old && fresh && { old, fresh, hunks: findHunks(old, fresh) };
}

async function load(content: StoredContent, snapshots: Contents): Promise<string[] | undefined> {
  const bytes = typeof content === "string" ? await snapshots.load(content) : undefined;
  const text = toMergeableText(bytes);
  return text === undefined ? undefined : splitLines(text);
}

function getOperation({ before, after, fromPath }: NetChange): FileChange["operation"] {
  if (fromPath !== undefined) return "move";
  return before === null ? "add" : after === null ? "delete" : "update";
}

const plain = { additions: 0, deletions: 0 };

function listMetadata({ fromPath, newMode }: NetChange): ChangeItem[] {
  return [
    ...(fromPath === undefined ? [] : [{ kind: "renamed" as const, ...plain }]),
    ...(newMode === undefined ? [] : [{ kind: "mode" as const, ...plain }]),
  ];
}

/** Lists a change whose content can only be dropped as a whole. */
async function listWhole(net: NetChange, snapshots: Contents): Promise<ChangeItem[]> {
  const { before, after, uncontested, wasLink, isLink } = net;
  const isContested = uncontested !== before && { isContested: true as const };
  const whole = (kind: ChangeItem["kind"], counts = {}): ChangeItem[] => [
    { kind, ...plain, ...counts, ...isContested },
  ];
  if (before === undefined || after === undefined) return whole("not-stored");
  if (wasLink || isLink) return whole("link");
  if (before === null) return whole("created", { additions: (await load(after, snapshots))?.length ?? 0 });
  if (after === null) return whole("deleted", { deletions: (await load(before, snapshots))?.length ?? 0 });
  return [...listMetadata(net), ...(before === after ? [] : whole("binary"))];
}

async function listLines(net: NetChange, lines: ChangedLines, snapshots: Contents): Promise<ChangeItem[]> {
  const own = net.isEdited ? await load(net.uncontested, snapshots) : lines.old;
  const free = own === undefined ? [] : findLineChanges(own, lines.fresh);
  return [
    ...listMetadata(net),
    ...lines.hunks.map((hunk): ChangeItem => {
      const isFree = hunk.changes.every((change) => isAmong(change, lines.old, free, own ?? []));
      return {
        kind: "hunk",
        line: (hunk.changes[0]?.newStart ?? 0) + 1,
        additions: sum(hunk.changes, ({ newStart, newEnd }) => newEnd - newStart),
        deletions: sum(hunk.changes, ({ start, end }) => end - start),
        ...(!isFree && { isContested: true }),
      };
    }),
  ];
}

/** Whether the user's version without the agent's changes differs by the same change. */
function isAmong(
  change: LineChange,
  old: readonly string[],
  others: readonly LineChange[],
  otherLines: readonly string[],
): boolean {
  const other = others.find(
    ({ newStart, newEnd }) => newStart === change.newStart && newEnd === change.newEnd,
  );
  if (other === undefined || other.end - other.start !== change.end - change.start) return false;
  return old.slice(change.start, change.end).every((line, index) => line === otherLines[other.start + index]);
}

function sum(changes: readonly LineChange[], count: (change: LineChange) => number): number {
  return changes.reduce((total, change) => total + count(change), 0);
}
