import { orAfter } from "../base/async.ts";
import type { Job } from "../tool/job/jobs.ts";
import { takeHead } from "../tool/output-limit.ts";

/** Characters of a title in the list. */
const titleLimit = 120;
/** Time for a stopped job to end. */
const stopMs = 5_000;

/** `/jobs`, `/jobs stop N` and `/jobs stop all`. */
export async function runJobs(all: readonly Job[], rest: string): Promise<string> {
  const [action = "", id = "", ...more] = rest.split(/\s+/);
  if (action === "") return describeAll(all);
  const running = all.filter(({ end }) => end === undefined);
  if (action !== "stop" || id === "" || more.length > 0)
    return "Write `/jobs` to list the jobs, `/jobs stop 2` to stop job 2, `/jobs stop all` to stop all.";
  if (id === "all") {
    await Promise.all(running.map((job) => stop(job)));
    return running.length === 0 ? "No job runs." : running.map((job) => describe(job)).join("\n");
  }
  const job = all.find((one) => String(one.id) === id);
  if (job === undefined) return [`Job ${id} not found.`, "", describeAll(all)].join("\n");
  if (job.end === undefined) await stop(job);
  return describe(job);
}

async function stop(job: Job): Promise<void> {
  job.stop("user");
  await orAfter(job.ended, stopMs, undefined);
}

function describeAll(all: readonly Job[]): string {
  if (all.length === 0) return "Nothing runs in the background.";
  const isRunning = all.some(({ end }) => end === undefined);
  return [
    ...all.map((job) => describe(job)),
    ...(isRunning ? ["", "`/jobs stop N` stops a job. Jobs end with the session."] : []),
  ].join("\n");
}

function describe({ id, kind, title, startedAt, end, log }: Job): string {
  const line = takeHead(title.replaceAll(/\s+/g, " "), titleLimit);
  const subject = kind === "command" ? `\`${line}\`` : line;
  const age = formatDuration((end?.time ?? Date.now()) - startedAt);
  const state = end === undefined ? `runs for ${age}` : `${end.description} after ${age}`;
  const last = log.lastLine === "" ? "" : `; last line: \`${log.lastLine}\``;
  return `- **${id}** ${subject}: ${state}${last}`;
}

function formatDuration(ms: number): string {
  const seconds = Math.round(ms / 1_000);
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.floor(seconds / 60);
  return minutes < 60
    ? `${minutes} min ${seconds % 60} s`
    : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}
