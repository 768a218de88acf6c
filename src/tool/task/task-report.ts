import type { SessionId } from "../../message/ids.ts";
import type { TaskWorktree } from "../tool.ts";

/** Files of a worktree that a report names. */
const namedFiles = 20;

export interface TaskNotes {
  readonly taskId: SessionId;
  readonly agent: string;
  readonly state: string;
  /** `files` is undefined if they were not compared. */
  readonly worktree?: (Pick<TaskWorktree, "branch" | "root"> & Partial<TaskWorktree>) | undefined;
}

/** Formats where a task's changes are, and what the model needs to continue it; follows the task's report. */
export function formatTaskNotes({ taskId, agent, state, worktree }: TaskNotes): string {
  return [
    ...(worktree === undefined ? [] : [describeWorktree(worktree), ""]),
    "<task_metadata>",
    `task_id: ${taskId}`,
    `agent: ${agent}`,
    `state: ${state}`,
    "</task_metadata>",
  ].join("\n");
}

function describeWorktree({ branch, root, files, untracked }: NonNullable<TaskNotes["worktree"]>): string {
  const missing =
    untracked === undefined ? "" : ` Untracked files of the checkout (${untracked}) were not in it.`;
  if (files?.length === 0) return `The task changed no files of its worktree, which is removed.${missing}`;
  const more = (files?.length ?? 0) - namedFiles;
  const names = files?.slice(0, namedFiles).join(", ");
  const changes =
    names === undefined ? "Changes" : `Changes (${names}${more > 0 ? ` and ${more} more` : ""})`;
  return `${changes} are in the worktree ${root} on the branch ${branch}, not in the user's files. Only the user can merge them, with \`/merge ${branch}\`.${missing}`;
}

/** Returns a task's report without the notes for the model. */
export function removeTaskNotes(output: string): string {
  return output.replace(/\n*<task_metadata>[^]*$/, "");
}
