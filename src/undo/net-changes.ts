import { isUtf8 } from "node:buffer";
import { mergeLines, splitLines } from "../base/text/line-diff.ts";
import type { FileChange } from "../message/part.ts";
import type { Snapshots } from "../workspace/files/snapshot.ts";
import { type FileMetadata, type FileStep, fileSteps, mergeMetadata } from "../conversation/checkpoints.ts";

/** Permission bits that changes do not record. */
export const defaultMode = 0o644;

/** Content of a file in the snapshot store: its hash; null is "no such file", undefined is "not stored". */
export type StoredContent = string | null | undefined;

/**
 * The net effect of the agent's changes of one file, without the changes of the user between and after them.
 */
export interface NetChange extends FileMetadata {
  readonly path: string;
  /** The path before, if the file was moved. */
  readonly fromPath?: string;
  /**
   * The file without the agent's changes. If both changed the same lines: the lines before the agent's
   * change.
   */
  readonly before: StoredContent;
  readonly after: StoredContent;
  /** As `before`, but with the user's lines where both changed the same. */
  readonly uncontested: StoredContent;
  /** Whether the user changed the file between or after the agent's changes. */
  readonly isEdited: boolean;
}

export interface NetChangesDeps {
  readonly snapshots: Snapshots;
  /** Stores a file as it is now, unless it is the known one. Absent: the agent's last content counts. */
  readNow?(path: string, known: StoredContent): Promise<StoredContent>;
}

/** Returns the net changes per file, sorted by path. */
export async function findNetChanges(
  changes: readonly FileChange[],
  deps: NetChangesDeps,
): Promise<NetChange[]> {
  const byPath = Map.groupBy(fileSteps(changes), ({ path }) => path);
  const found: NetChange[] = [];
  for (const [path, steps] of byPath) {
    const net = { path, ...mergeMetadata(steps), ...(await mergeSteps(path, steps, deps)) };
    if (hasChanged(net)) found.push(net);
  }
  return pairMoves(found, changes).sort((one, other) => (one.path < other.path ? -1 : 1));
}

/** Returns the text of a content that can be merged by lines; undefined for other contents. */
export function toMergeableText(bytes: Buffer | undefined): string | undefined {
  return bytes !== undefined && !bytes.includes(0) && isUtf8(bytes) ? bytes.toString("utf8") : undefined;
}

function hasChanged({ before, after, newMode, wasLink, isLink }: NetChange): boolean {
  if (before === null && after === null) return false;
  return before !== after || before === undefined || newMode !== undefined || wasLink !== isLink;
}

async function mergeSteps(path: string, steps: readonly FileStep[], deps: NetChangesDeps) {
  const first = steps[0]?.before;
  let base = { before: first, uncontested: first };
  let after = first;
  let isEdited = false;
  const applyEdit = async (edited: StoredContent) => {
    // An unknown content may be the one before.
    if (after === edited || after === undefined || edited === undefined) return;
    base = await rebase(base, after, edited, deps.snapshots);
    isEdited = true;
  };
  for (const step of steps) {
    await applyEdit(step.before);
    after = step.after;
  }
  if (deps.readNow !== undefined) {
    const now = await deps.readNow(path, after);
    await applyEdit(now);
    after = after === undefined ? undefined : now;
  }
  return { ...base, after, isEdited };
}

type Base = Pick<NetChange, "before" | "uncontested">;

/** Applies the user's edit of the agent's content to the file without the agent's changes. */
async function rebase(
  base: Base,
  from: string | null,
  to: string | null,
  snapshots: Snapshots,
): Promise<Base> {
  const replaced: Base = { before: to, uncontested: to };
  if (from === null || to === null) return replaced;
  const [fromText, toText] = [await loadText(from, snapshots), await loadText(to, snapshots)];
  const beforeText = await loadText(base.before, snapshots);
  const uncontestedText = await loadText(base.uncontested, snapshots);
  if (fromText === undefined || toText === undefined || beforeText === undefined)
    return base.before === null || base.before === undefined ? { ...base, uncontested: to } : replaced;
  const merge = async (text: string, preferred: "ours" | "theirs") => {
    const { lines } = mergeLines(splitLines(fromText), splitLines(text), splitLines(toText), preferred);
    return snapshots.save(Buffer.from(lines.join("")));
  };
  const uncontested = uncontestedText === undefined ? to : await merge(uncontestedText, "theirs");
  return { before: await merge(beforeText, "ours"), uncontested };
}

async function loadText(content: StoredContent, snapshots: Snapshots): Promise<string | undefined> {
  return typeof content === "string" ? toMergeableText(await snapshots.load(content)) : undefined;
}

/** Joins the removal and the creation of a file that was moved. */
function pairMoves(nets: readonly NetChange[], changes: readonly FileChange[]): NetChange[] {
  const origins = new Map<string, string>();
  for (const { operation, path, fromPath } of changes)
    if (operation === "move" && fromPath !== undefined) origins.set(path, origins.get(fromPath) ?? fromPath);
  const removed = nets.filter(
    ({ before, after, isEdited, wasLink }) =>
      after === null && typeof before === "string" && !isEdited && !wasLink,
  );
  const paired = new Set<NetChange>();
  const joined = nets.flatMap((net): NetChange[] => {
    if (net.before !== null || net.after === null || net.isEdited || net.isLink) return [net];
    const free = removed.filter((one) => !paired.has(one));
    const origin =
      free.find(({ path }) => path === origins.get(net.path)) ??
      free.find(({ before }) => before === net.after);
    if (origin === undefined) return [net];
    paired.add(origin);
    const { path: fromPath, before, uncontested, mode = defaultMode } = origin;
    const { mode: newMode = defaultMode, ...moved } = net;
    return [
      { ...moved, fromPath, before, uncontested, mode, newMode: mode === newMode ? undefined : newMode },
    ];
  });
  return joined.filter((net) => !paired.has(net));
}
