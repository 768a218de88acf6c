import reminder from "../../prompts/reminders/job-ended.md";
import { fill } from "../conversation/reminders.ts";
import type { ToolPart } from "../message/part.ts";
import type { Job } from "../tool/job/jobs.ts";
import { cutMiddle, takeHead } from "../tool/output-limit.ts";

/** Characters of a command's unread output. */
const outputLimit = 2_000;
/** Characters of a task's report. */
const reportLimit = 16_000;
/** Characters of a title. */
const titleLimit = 200;

/** Describes ended jobs for the model: those of this process, and calls whose jobs an earlier process ended. */
export function describeEnds(jobs: readonly Job[], calls: readonly ToolPart[]): string {
  const texts = [...calls.map((call) => describeCall(call)), ...jobs.map((job) => describeJob(job))];
  return fill(reminder, { jobs: texts.join("\n\n") }).trim();
}

function describeCall({ tool, title = "", state }: ToolPart): string {
  if (state.status !== "completed" || state.job?.end === undefined) return "";
  const { id, end } = state.job;
  const line = describe(id, title, end.description);
  return tool === "task" ? addReport(line, end.output) : line;
}

function describeJob({ id, kind, title, end, log }: Job): string {
  const line = describe(id, title, end?.description ?? "has ended");
  if (kind === "task") return addReport(line, end?.output ?? "");
  const { text, skipped } = log.read();
  const unread = text.trimEnd();
  if (unread === "") return line;
  const isCut = skipped > 0 || unread.length > outputLimit;
  return `${line} The ${isCut ? "end of its" : "rest of its"} output:\n\n${unread.slice(-outputLimit).toWellFormed()}`;
}

function addReport(line: string, report: string): string {
  return `${line} Its report:\n\n${cutMiddle(report, reportLimit, 0.75)}`;
}

function describe(id: number, title: string, end: string): string {
  return `Job ${id} (${takeHead(title, titleLimit)}) ${end}.`;
}
