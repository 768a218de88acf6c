import type { SessionInfo } from "../message/message.ts";
import type { Tool } from "../tool/tool.ts";

/** The parts of a session that the command uses. */
export interface MergeContext {
  readonly info: Pick<SessionInfo, "worktree">;
  /** Returns the tool that merges the session's worktree; undefined without a worktree. */
  mergeTool(): Promise<Tool | undefined>;
}

const noWorktree =
  "This session works in its folder, not in a worktree: its changes are there already. Start a session in a worktree with `worktree: true` in the configuration, or with `fairlead run --worktree`.";

/** `/merge` and `/merge drop`. Returns the call, or a text that answers the command instead. */
export async function prepareMerge(session: MergeContext, rest: string) {
  if (rest !== "" && rest !== "drop")
    return "Write `/merge` to merge the changes of the worktree, or `/merge drop` to discard them.";
  const { worktree } = session.info;
  const tool = await session.mergeTool();
  if (worktree === undefined || tool === undefined) return noWorktree;
  return { tool, input: { action: rest === "drop" ? "drop" : "merge", branch: worktree.branch } };
}
