import { messageOf } from "../../base/errors.ts";
import { JobLog } from "../job/job-log.ts";
import type { StartedJob, WorkEnd } from "../job/jobs.ts";
import {
  appendNotes,
  type RunContext,
  type RunningTask,
  type TaskOutcome,
  type ToolContext,
} from "../tool.ts";
import type { ToolResult, TaskRequest } from "../tool.ts";
import { formatTaskNotes } from "./task-report.ts";
import { createReport, noReport } from "./task-result.ts";

/** Characters of the lines about a running task's steps that a replay shows. */
const shownLimit = 16 * 1024;

/** Starts a task and answers its call at once: the task continues as a job. */
export async function runInBackground(
  task: TaskRequest,
  title: string,
  { tasks, jobs }: Pick<ToolContext, "tasks" | "jobs">,
  run: RunContext,
): Promise<ToolResult> {
  const stop = new AbortController();
  const cancel = () => stop.abort();
  run.signal.addEventListener("abort", cancel, { once: true });
  if (run.signal.aborted) cancel();
  const lines = new TaskLines();
  const shown: { job?: StartedJob } = {};
  const output = (delta: string) => {
    lines.add(delta);
    shown.job?.show(delta);
  };
  const starting = tasks.start(task, { callId: run.callId, signal: stop.signal, output });
  // Counts against the limit before the task runs.
  const job = jobs.start({
    kind: "task",
    title,
    startedAt: Date.now(),
    log: lines.log,
    ended: waitForEnd(task.agent, starting).finally(() => lines.log.end()),
    stop: cancel,
    readOutput: async () => lines.shown,
    saveOutput: async () => undefined,
  });
  shown.job = job;
  try {
    return createStartResult(task.agent, await starting, job);
  } catch (error) {
    job.discard();
    throw error;
  } finally {
    run.signal.removeEventListener("abort", cancel);
  }
}

function createStartResult(agent: string, { taskId }: RunningTask, job: StartedJob): ToolResult {
  const output = `The task runs in the background as job ${job.id}. You get its report when it ends; go on with other work, or wait for it with the job tool if nothing is left to do.`;
  return {
    status: "completed",
    output,
    notes: formatTaskNotes({ taskId, agent, state: "running" }),
    metadata: { sessionId: taskId, agent, state: "running", job: job.id },
    job,
  };
}

/** Waits for the end of the task. Never rejects. */
async function waitForEnd(agent: string, starting: Promise<RunningTask>): Promise<WorkEnd> {
  try {
    const { ended } = await starting;
    const outcome = await ended;
    const { text, notes, metadata, changes } = createReport(agent, outcome);
    return { ...describeEnd(outcome), output: appendNotes(text, notes), changes, metadata };
  } catch (error) {
    return { state: "failed", description: `failed: ${messageOf(error)}`, output: noReport };
  }
}

function describeEnd({ end }: TaskOutcome): Pick<WorkEnd, "state" | "description"> {
  switch (end) {
    case "finished":
      return { state: "completed", description: "has finished" };
    case "cutShort":
      return { state: "completed", description: "was cut short" };
    case "stopped":
      return { state: "stopped", description: "ended because the user rejected a call" };
    case "cancelled":
      return { state: "stopped", description: "was cancelled" };
    case "failed":
      return { state: "failed", description: "has failed" };
  }
}

/** The lines about a task's steps: unread ones for the model, the newest ones for the user. */
class TaskLines {
  readonly log = new JobLog();
  #shown = "";

  get shown(): string {
    return this.#shown;
  }

  add(lines: string): void {
    this.log.add(lines, "");
    this.#shown = (this.#shown + lines).slice(-shownLimit).toWellFormed();
  }
}
