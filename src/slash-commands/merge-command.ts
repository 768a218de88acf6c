import type { MergeTarget } from "../tool/merge/merge.ts";
import type { Worktrees } from "../workspace/worktrees/worktrees.ts";

/** The parts of a session that the command uses. */
export interface MergeContext {
  worktrees(): Promise<Worktrees>;
  /** Returns the worktrees with changes: the session's and those of its tasks. */
  mergeTargets(): Promise<readonly MergeTarget[]>;
}

const nothingToMerge =
  "Nothing to merge: no worktree of this session or of its tasks has changes. A session works in a worktree with `worktree: true` in the configuration or with `fairlead run --worktree`; a task does so if you ask the model for it. Other changes are in the session's folder already.";

/** `/merge [NAME]` and `/merge drop [NAME]`. Returns the call, or a text that answers the command instead. */
export async function prepareMerge(session: MergeContext, rest: string) {
  const words = rest.split(/\s+/).filter((word) => word !== "");
  const action = words[0] === "drop" ? "drop" : "merge";
  const [name, ...more] = action === "drop" ? words.slice(1) : words;
  if (more.length > 0) return usage;
  const targets = await session.mergeTargets();
  if (targets.length === 0) return nothingToMerge;
  const named =
    name === undefined ? targets : targets.filter(({ worktree }) => hasName(worktree.branch, name));
  const [target] = named;
  if (target === undefined)
    return [`No worktree with changes is named ${name}.`, "", list(targets)].join("\n");
  if (named.length > 1)
    return [`${named.length} worktrees have changes. Name one.`, "", list(targets)].join("\n");
  if (target.isRunning)
    return `The task in ${target.worktree.branch} still works. Send \`/merge\` when it has ended, or stop it with \`/jobs\`.`;
  const { mergeTool } = await import("../tool/merge/merge.ts");
  const tool = mergeTool(await session.worktrees(), target);
  return { tool, input: { action, branch: target.worktree.branch } };
}

const usage =
  "Write `/merge` to merge the changes of a worktree, or `/merge drop` to discard them. If several worktrees have changes, add the name of one.";

const shortName = (branch: string): string => branch.slice(branch.lastIndexOf("/") + 1);

const hasName = (branch: string, name: string): boolean => name === branch || name === shortName(branch);

function list(targets: readonly MergeTarget[]): string {
  return targets
    .map(({ worktree: { branch, root }, task, isRunning }) => {
      const owner = task === undefined ? "this session" : `task ${JSON.stringify(task)}`;
      return `- \`/merge ${shortName(branch)}\`: ${owner}${isRunning ? ", which still works" : ""}, in ${root}`;
    })
    .join("\n");
}
