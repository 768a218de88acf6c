import { roundCost } from "../../base/text/cost.ts";
import type { FileChange } from "../../message/part.ts";
import type { TaskOutcome, ToolResult } from "../tool.ts";
import { formatTaskNotes } from "./task-report.ts";

/** The stored end of a task. */
export interface TaskReport {
  /** The agent's report, or why there is none. */
  readonly text: string;
  /** The id and other data with which the model can continue the task. */
  readonly notes: string;
  readonly changes: readonly FileChange[];
  readonly metadata: Record<string, unknown>;
}

export const noReport = "(The agent wrote no report.)";

/** Returns the result of a task's call. */
export function toResult(agent: string, outcome: TaskOutcome): ToolResult {
  const { text, ...more } = createReport(agent, outcome);
  const { end } = outcome;
  return end === "finished" || end === "cutShort" || end === "stopped"
    ? { status: "completed", output: text, ...more }
    : { status: "failed", error: text, ...more };
}

export function createReport(agent: string, outcome: TaskOutcome): TaskReport {
  const { taskId, end, reason, changes, calls, cost, summary, notUndone, activity, model, worktree } =
    outcome;
  const metadata = {
    sessionId: taskId,
    agent,
    ...(model && { model }),
    state: end,
    calls,
    cost: roundCost(cost),
    summary,
    ...(notUndone.length > 0 && { notUndone }),
    ...(activity.length > 0 && { activity }),
    ...(worktree && { worktree: { branch: worktree.branch, root: worktree.root, files: worktree.files } }),
  };
  const report = outcome.text === "" ? noReport : outcome.text;
  const why = reason ?? "The task ended before it was done.";
  const text =
    end === "finished"
      ? report
      : [why, ...(outcome.text === "" ? [] : ["", "Its last message:", report])].join("\n");
  return { text, notes: formatTaskNotes({ taskId, agent, state: end, worktree }), changes, metadata };
}
