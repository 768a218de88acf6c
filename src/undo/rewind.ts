import { lstat, readdir } from "node:fs/promises";
import { join } from "node:path";
import { messageOf } from "../base/errors.ts";
import { isBelow } from "../base/files/paths.ts";
import type { MessageId } from "../message/ids.ts";
import { clientIdOf, type Message } from "../message/message.ts";
import type { FileChange, Part } from "../message/part.ts";
import type { Workspace } from "../workspace/workspace.ts";
import {
  describeDone,
  type FileOutcome,
  type FileRevert,
  findLinkObstacle,
  findObstacle,
  findThing,
  removes,
  staleReason,
} from "./revert.ts";
import type { rewindModes } from "./rewind-modes.ts";

export type RewindMode = (typeof rewindModes)[number];

/** A message to rewind to, by its id or the id of one of its parts. */
export interface RewindTarget {
  readonly point: string;
  /** Whether the message itself is dropped. It must start a turn then. */
  readonly isDropped: boolean;
}

export interface RewindOptions {
  readonly mode: RewindMode;
  /** Reports what would change, and changes nothing. */
  readonly isDryRun: boolean;
}

export type RewindOutcome =
  | { readonly outcome: "rewound"; readonly result: RewindResult }
  | { readonly outcome: "unknown message" | "not a turn" }
  | { readonly outcome: "task runs"; readonly problem: string };

/** The changes of a rewind, by the parts that its mode names. */
export interface RewindResult {
  readonly files?: RewoundFiles;
  readonly droppedMessages?: number;
  /** The last message that is left, by the id that clients know; undefined if there is none. */
  readonly lastId: string | undefined;
}

export interface RewoundFiles {
  readonly changed: readonly string[];
  /** Files that are left as they are, such as those that were changed since. */
  readonly kept: readonly { readonly path: string; readonly reason: string }[];
  readonly insertions: number;
  readonly deletions: number;
}

/** A turn to rewind to. */
export interface RewindPoint {
  readonly id: MessageId;
  readonly words: string;
  /** The message before it, by the id that clients know. */
  readonly previousId: string | undefined;
}

/** Returns what reverting the files would do, and changes nothing. */
export async function previewReverts(
  workspace: Workspace,
  plan: readonly FileRevert[],
): Promise<{ revert: FileRevert; outcome: FileOutcome }[]> {
  const removed = new Set<string>();
  for (const revert of plan)
    if (removes(revert) && (await previewRevert(workspace, revert)) === "removed") removed.add(revert.path);
  const previews = plan.map(async (revert) => ({
    revert,
    outcome: await previewRevert(workspace, revert, removed),
  }));
  return Promise.all(previews);
}

/**
 * Returns what {@link revertFile} would do, and changes nothing. `removed`: files that are removed before, whose places
 * become free.
 */
export async function previewRevert(
  workspace: Workspace,
  revert: FileRevert,
  removed: ReadonlySet<string> = new Set(),
): Promise<FileOutcome> {
  if (revert.reach === "none") return { kept: "its content was too large to store" };
  try {
    return await preview(workspace, revert, removed);
  } catch (error) {
    return { kept: messageOf(error) };
  }
}

/** Whether the path becomes free when files are removed that are in its folder, or in the place of a folder above it. */
async function isFreed(path: string, removed: ReadonlySet<string>): Promise<boolean> {
  for (const other of removed) if (isBelow(path, other)) return true;
  try {
    if (!(await lstat(path)).isDirectory()) return false;
    const entries = await readdir(path, { withFileTypes: true, recursive: true });
    return entries.every((entry) => entry.isDirectory() || removed.has(join(entry.parentPath, entry.name)));
  } catch {
    return false;
  }
}

type ReachableRevert = Exclude<FileRevert, { reach: "none" }>;

async function preview(
  workspace: Workspace,
  revert: ReachableRevert,
  removed: ReadonlySet<string>,
): Promise<FileOutcome> {
  const { path, left, back, newMode, wasLink = false, isLink = false } = revert;
  if (left === back && newMode === undefined && wasLink === isLink) return "unchanged";
  const isFree = left === null && (await isFreed(path, removed));
  const findReason = wasLink || isLink ? findLinkObstacle : findObstacle;
  const obstacle = isFree ? undefined : await findReason(workspace, path);
  if (obstacle !== undefined) return { kept: obstacle };
  const found = isFree ? { hash: null, isLink: false } : await findThing(workspace.files, path);
  const isThere = (hash: string | null, link: boolean) =>
    found.hash === hash && (hash === null || found.isLink === link);
  if (!isThere(left, isLink))
    return isThere(back, wasLink) ? "unchanged" : { kept: staleReason(found.hash, left) };
  if (back !== null && (await workspace.snapshots.load(back)) === undefined)
    return { kept: "its earlier content is no longer stored" };
  return describeDone(left, back);
}

/** Summarizes the outcome of each file. The counts are those of the agent's changes, reversed. */
export function toRewoundFiles(
  outcomes: readonly { readonly revert: FileRevert; readonly outcome: FileOutcome }[],
  changes: readonly FileChange[],
): RewoundFiles {
  const changed = outcomes.flatMap(({ revert, outcome }) =>
    typeof outcome === "object" || outcome === "unchanged" ? [] : [revert.path],
  );
  const kept = outcomes.flatMap(({ revert: { path }, outcome }) =>
    typeof outcome === "object" ? [{ path, reason: outcome.kept }] : [],
  );
  const counted = changes.filter(({ path }) => changed.includes(path));
  return {
    changed,
    kept,
    insertions: counted.reduce((sum, { deletions }) => sum + deletions, 0),
    deletions: counted.reduce((sum, { additions }) => sum + additions, 0),
  };
}

/** Returns the id under which clients know the end of the messages, given newest first. */
export async function findLastId(
  newestFirst: AsyncIterable<Message> | Iterable<Message>,
): Promise<string | undefined> {
  for await (const { info, parts } of newestFirst) {
    if (info.role === "user") {
      if (parts.some((part) => part.type !== "text" || part.synthetic !== true)) return clientIdOf(info);
    } else if (info.summary !== true) {
      const id = parts.findLast(isShownText)?.id;
      if (id !== undefined) return id;
    }
  }
  return undefined;
}

/** Texts and thoughts of the model have the ids of their parts in the protocol. */
function isShownText(part: Part): boolean {
  if (part.type !== "text" && part.type !== "reasoning") return false;
  return part.text !== "" && !(part.type === "text" && part.synthetic === true);
}
