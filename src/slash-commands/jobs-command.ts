import { orAfter } from "../base/async.ts";
import type { Job } from "../tool/job/jobs.ts";
import { takeHead } from "../tool/output-limit.ts";

/** Characters of a title in the list. */
const titleLimit = 120;
/** Time for a stopped job to end. */
const stopMs = 5_000;

const usage =
  "Write `/jobs` to list the jobs, `/jobs stop 2` to stop job 2, `/jobs stop all` to stop all, `/jobs keep 2` to let command 2 go on when the session is closed.";

/** `/jobs`, `/jobs stop N`, `/jobs stop all` and `/jobs keep N`. */
export async function runJobs(all: readonly Job[], rest: string): Promise<string> {
  const [action = "", id = "", ...more] = rest.split(/\s+/);
  if (action === "") return describeAll(all);
  if (!["stop", "keep"].includes(action) || id === "" || more.length > 0) return usage;
  if (action === "stop" && id === "all") return stopAll(all);
  const job = all.find((one) => String(one.id) === id);
  if (job === undefined) return [`Job ${id} not found.`, "", describeAll(all)].join("\n");
  if (job.end !== undefined) return describe(job);
  if (action === "keep") return keep(job);
  await stop(job);
  return describe(job);
}

async function stopAll(all: readonly Job[]): Promise<string> {
  const running = all.filter(({ end }) => end === undefined);
  await Promise.all(running.map((job) => stop(job)));
  return running.length === 0 ? "No job runs." : running.map((job) => describe(job)).join("\n");
}

function keep(job: Job): string {
  if (job.kind === "task")
    return `Job ${job.id} is a task, which may ask you something. It ends with the session; only commands can be kept.`;
  job.keep();
  return `Job ${job.id} goes on when this session is closed. It ends with Fairlead at the latest. Open the session again to see it, or to stop it with \`/jobs stop ${job.id}\`.`;
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
    ...(isRunning
      ? [
          "",
          "`/jobs stop N` stops a job. Jobs end with the session; `/jobs keep N` lets a command go on when it is closed.",
        ]
      : []),
  ].join("\n");
}

function describe({ id, kind, title, startedAt, end, log, isKept }: Job): string {
  const line = takeHead(title.replaceAll(/\s+/g, " "), titleLimit);
  const subject = kind === "command" ? `\`${line}\`` : line;
  const age = formatDuration((end?.time ?? Date.now()) - startedAt);
  const state = end === undefined ? `runs for ${age}` : `${end.description} after ${age}`;
  const last = log.lastLine === "" ? "" : `; last line: \`${log.lastLine}\``;
  const kept = isKept && end === undefined ? "; goes on after the session" : "";
  return `- **${id}** ${subject}: ${state}${kept}${last}`;
}

function formatDuration(ms: number): string {
  const seconds = Math.round(ms / 1_000);
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.floor(seconds / 60);
  return minutes < 60
    ? `${minutes} min ${seconds % 60} s`
    : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}
