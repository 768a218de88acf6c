import type { SessionId } from "../message/ids.ts";
import type { Message, SessionInfo, Worktree } from "../message/message.ts";
import type { SessionStore } from "../storage/session-store.ts";
import { omitReverted } from "../conversation/visible-messages.ts";
import { mergeName } from "../tool/merge/merge-name.ts";
import type { MergeTarget } from "../tool/merge/merge.ts";
import type { Worktrees } from "../workspace/worktrees/worktrees.ts";

export interface MergeTargetsDeps {
  readonly store: Pick<SessionStore, "list" | "messagesFromNewest">;
  readonly worktrees: Worktrees;
  /** Whether a session runs in this process, also as a task. */
  isLive(id: SessionId): boolean;
}

/** Sessions read at a time. */
const pageSize = 100;

/** Returns the worktrees with changes: that of the session, and those of its tasks, oldest first. */
export async function listMergeTargets(deps: MergeTargetsDeps, session: SessionInfo): Promise<MergeTarget[]> {
  const targets: MergeTarget[] = [];
  for (const target of await findTargets(deps, session))
    if (await isNeeded(deps, target)) targets.push(target);
  return targets;
}

/** Removes the worktrees of a closed session and of its tasks, except those with changes that were not merged. */
export async function removeMerged(deps: MergeTargetsDeps, session: SessionInfo): Promise<void> {
  let hasOpenTask = false;
  // The session's own worktree, which comes first, is what its tasks merge into.
  for (const target of (await findTargets(deps, session)).reverse()) {
    const isOwn = target.task === undefined;
    if ((await isNeeded(deps, target)) || (isOwn && hasOpenTask)) hasOpenTask = true;
    else await deps.worktrees.remove(target.worktree);
  }
}

/** Returns the files that a task's worktree has changed since its last merge. Removes the worktree if there are none. */
export async function settleTask(
  deps: MergeTargetsDeps,
  session: SessionInfo,
  worktree: Worktree,
): Promise<string[]> {
  const { state = worktree.base, unresolved = 0 } =
    (await findMerged(deps, session)).get(worktree.branch) ?? {};
  const files = await deps.worktrees.listChanges(worktree, state);
  if (files.length === 0 && unresolved === 0) await deps.worktrees.remove(worktree);
  return files;
}

/** Returns whether a task works in the worktree, or the worktree has changes that are not merged. */
async function isNeeded({ worktrees }: MergeTargetsDeps, target: MergeTarget): Promise<boolean> {
  if (target.isUnresolved || target.isRunning) return true;
  return (await worktrees.listChanges(target.worktree, target.base)).length > 0;
}

async function findTargets(deps: MergeTargetsDeps, session: SessionInfo): Promise<MergeTarget[]> {
  const merged = await findMerged(deps, session);
  const tasks = await loadTasks(deps, session);
  const toTarget = ({ id, worktree, title }: SessionInfo): MergeTarget[] => {
    if (worktree === undefined || !deps.worktrees.exists(worktree)) return [];
    const { state = worktree.base, unresolved = 0 } = merged.get(worktree.branch) ?? {};
    const task = id === session.id ? undefined : { title: title ?? "", isRunning: deps.isLive(id) };
    return [
      {
        worktree,
        base: state,
        isUnresolved: unresolved > 0,
        isRunning: task?.isRunning ?? false,
        ...(task && { task: task.title }),
      },
    ];
  };
  return [session, ...tasks].flatMap(toTarget);
}

async function loadTasks(
  { store }: MergeTargetsDeps,
  { id, projectId }: SessionInfo,
): Promise<SessionInfo[]> {
  const tasks: SessionInfo[] = [];
  for (let cursor: string | undefined; ;) {
    const query = { projectId, parentId: id, includeArchived: true, limit: pageSize };
    const page = await store.list({ ...query, ...(cursor !== undefined && { cursor }) });
    tasks.push(...page.sessions);
    cursor = page.nextCursor;
    if (cursor === undefined) return tasks.reverse();
  }
}

/** The state of a worktree's last merge that was not undone. */
interface MergedState {
  /** The commit that was merged. */
  readonly state: string;
  /** Number of files with conflicts and of files that were not merged. */
  readonly unresolved: number;
}

/** Finds the last merge of each branch. */
async function findMerged(
  { store }: MergeTargetsDeps,
  { id, revert }: SessionInfo,
): Promise<ReadonlyMap<string, MergedState>> {
  const merged = new Map<string, MergedState>();
  for await (const { parts } of omitReverted(store.messagesFromNewest(id), revert))
    for (const [branch, state] of parts.flatMap(toMergedState))
      if (!merged.has(branch)) merged.set(branch, state);
  return merged;
}

function toMergedState(part: Message["parts"][number]): [string, MergedState][] {
  if (part.type !== "tool" || part.tool !== mergeName || part.state.status !== "completed") return [];
  const { branch, state, unresolved = 0 } = part.state.metadata ?? {};
  if (typeof branch !== "string" || typeof state !== "string") return [];
  return [[branch, { state, unresolved: Number(unresolved) }]];
}
