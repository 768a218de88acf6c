import type { SessionId } from "../../message/ids.ts";

/** Formats what the model needs to continue a task; follows the task's report. */
export function formatTaskNotes(task: { taskId: SessionId; agent: string; state: string }): string {
  return [
    "<task_metadata>",
    `task_id: ${task.taskId}`,
    `agent: ${task.agent}`,
    `state: ${task.state}`,
    "</task_metadata>",
  ].join("\n");
}

/** Returns a task's report without the notes for the model. */
export function removeTaskNotes(output: string): string {
  return output.replace(/\n*<task_metadata>[^]*$/, "");
}
