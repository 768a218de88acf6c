import { z } from "zod";
import { orAfter, orWhenAborted } from "../../base/async.ts";
import { messageOf } from "../../base/errors.ts";
import description from "../../../prompts/tools/job.md";
import { createTimeLimit } from "../../workspace/search/time-limit.ts";
import { analyzeInput } from "../command-analysis.ts";
import { formatBytes, takeHead } from "../output-limit.ts";
import { explainExpression } from "../search/pattern-hints.ts";
import {
  defineTool,
  type PreparedCall,
  type Tool,
  type ToolContext,
  ToolFailure,
  type ToolResult,
} from "../tool.ts";
import type { UnreadText } from "./job-log.ts";
import type { Job } from "./jobs.ts";

const defaultWaitMs = 60_000;
const maxWaitMs = 600_000;
/** Time to search a pattern in the unread text. */
const searchMs = 1_000;
/** Time for a program to answer its input. */
const answerMs = 1_500;
/** The answer to an input is complete after this much silence. */
const quietMs = 300;
/** Time for a stopped job to end. */
const stopMs = 5_000;
/** Characters of a job's input, all together. */
const inputLimit = 64 * 1024;
/** Characters of a title in messages. */
const titleLimit = 80;
/** Characters of a quoted line. */
const lineLimit = 300;

const inputSchema = z.object({
  action: z.enum(["read", "wait", "write", "stop"]),
  id: z.number().int().positive().optional(),
  pattern: z.string().min(1).optional().describe("A regular expression for a line."),
  timeout: z.number().positive().optional().describe(`Milliseconds to wait: ${defaultWaitMs} unless given.`),
  text: z.string().min(1).optional().describe("To write."),
});
type Input = z.infer<typeof inputSchema>;

/** Reads, awaits, writes to and stops jobs of the session. */
export const jobTool: Tool = defineTool<Input>({
  name: "job",
  otherNames: ["jobs", "bash_output", "bashoutput", "kill_shell", "kill_bash", "write_stdin", "task_output"],
  aliases: {
    id: ["job_id", "job", "bash_id", "shell_id", "task_id"],
    text: ["input", "chars", "stdin"],
    pattern: ["filter", "regex"],
    timeout: ["timeout_ms"],
  },
  description,
  input: inputSchema,
  kind: "other",
  concurrency: "shared",
  prepare: prepareAction,
});

async function prepareAction(
  { action, id, pattern, timeout = defaultWaitMs, text }: Input,
  context: ToolContext,
): Promise<PreparedCall> {
  const job = findJob(context.jobs.all, id);
  const name = `job ${job.id}: ${takeHead(job.title, titleLimit)}`;
  const common = { locations: [], permissions: [] };
  switch (action) {
    case "read":
      return { ...common, title: `Read ${name}`, run: () => report(job) };
    case "wait": {
      const expression = pattern === undefined ? undefined : parsePattern(pattern);
      const limitMs = Math.min(timeout, maxWaitMs);
      const run = ({ signal }: { signal: AbortSignal }) => waitFor(job, { expression, limitMs, signal });
      return { ...common, title: `Wait for ${name}`, run };
    }
    case "stop":
      return { ...common, title: `Stop ${name}`, run: () => stop(job) };
    case "write": {
      const line = toLine(text);
      assertTakesInput(job, line);
      const { cwd, home, roots } = context.workspace;
      const shell = await context.workspace.processes.findShell();
      const folders = { cwd, start: job.folder ?? cwd, home, roots, shell };
      const earlier = job.input?.text ?? "";
      const permissions = await analyzeInput({ command: job.title, earlier, text: line }, folders);
      const title = `Write to job ${job.id}: ${takeHead(line.trimEnd(), titleLimit)}`;
      const preview = { text: `${line}\nis written to the input of ${job.title}` };
      return { ...common, title, preview, permissions, run: () => write(job, line, earlier) };
    }
  }
}

function findJob(all: readonly Job[], id: number | undefined): Job {
  const running = all.filter(({ end }) => end === undefined);
  const [only, ...others] = running;
  const job = id === undefined ? (others.length === 0 ? only : undefined) : all.find((one) => one.id === id);
  if (job !== undefined) return job;
  const list = all.map((one) => `- ${one.id}: ${takeHead(one.title, titleLimit)} (${describeState(one)})`);
  if (list.length === 0)
    throw new ToolFailure("There are no jobs. Start one with bash or task and background: true.");
  const problem = id === undefined ? "Give the id of a job." : `Job ${id} not found.`;
  throw new ToolFailure([`${problem} The jobs are:`, ...list].join("\n"));
}

function parsePattern(pattern: string): RegExp {
  try {
    return new RegExp(pattern);
  } catch (error) {
    throw new ToolFailure(`The pattern is not a valid regular expression: ${messageOf(error)}`);
  }
}

/** Adds the end of the line: programs read their input line by line. */
function toLine(text: string | undefined): string {
  if (text === undefined) throw new ToolFailure("Give the text to write.");
  return text.endsWith("\n") ? text : `${text}\n`;
}

function assertTakesInput({ id, kind, end, input }: Job, line: string): void {
  if (kind === "task")
    throw new ToolFailure(
      `Job ${id} is a task, which takes no input. When it has ended, call task with its task_id to continue it.`,
    );
  if (end !== undefined) throw new ToolFailure(`Job ${id} ${end.description}; it takes no input.`);
  if (input === undefined)
    throw new ToolFailure(
      `Job ${id} takes no input. Start the command with background: true to write to it.`,
    );
  if (!input.isOpen) throw new ToolFailure(`Job ${id} has closed its input.`);
  if (input.text.length + line.length > inputLimit)
    throw new ToolFailure(
      `A job takes at most ${formatBytes(inputLimit)} of input. Write the text to a file, or start another job.`,
    );
}

/** Returns the new output and the state of the job. */
async function report(job: Job, ...notes: string[]): Promise<ToolResult> {
  const { text, skipped } = readNew(job);
  const path = skipped === 0 ? undefined : await job.saveOutput();
  const omitted =
    skipped === 0
      ? []
      : [
          `[${formatBytes(skipped)} before are missing here.${path === undefined ? "" : ` The whole output is in ${path}.`}]`,
        ];
  if (job.end !== undefined) await job.noteReported();
  const output = text.trimEnd() || (job.end === undefined ? "(nothing new)" : "(no more output)");
  const state = `[Job ${job.id} ${describeState(job)}.]`;
  return {
    status: "completed",
    output,
    notes: [...omitted, ...notes, state].join("\n"),
    metadata: { job: job.id, running: job.end === undefined },
  };
}

/** Returns the unread output, or the report of a task that has ended. */
function readNew({ kind, log, end }: Job): UnreadText {
  const unread = log.read();
  return kind === "task" && end !== undefined ? { text: end.output, skipped: 0 } : unread;
}

function describeState({ end, startedAt }: Job): string {
  const seconds = ((end?.time ?? Date.now()) - startedAt) / 1_000;
  return end === undefined
    ? `has run for ${seconds.toFixed(1)} s`
    : `${end.description} after ${seconds.toFixed(1)} s`;
}

async function waitFor(
  job: Job,
  { expression, limitMs, signal }: { expression: RegExp | undefined; limitMs: number; signal: AbortSignal },
): Promise<ToolResult> {
  const limit = AbortSignal.any([signal, AbortSignal.timeout(limitMs)]);
  while (job.end === undefined) {
    const { changed } = job.log;
    const line = expression && findLine(job.log.unread, expression);
    if (line !== undefined) return report(job, `[Matching line: ${takeHead(line, lineLimit)}]`);
    if (limit.aborted) return report(job, ...describeTimeout(job, expression, limitMs));
    // Without a pattern only the end matters.
    const next = expression === undefined || job.log.isEnded ? job.ended : Promise.race([changed, job.ended]);
    await orWhenAborted(next, limit, undefined);
  }
  const line = expression && findLine(job.log.unread, expression);
  return report(
    job,
    ...(line === undefined ? [] : [`[Matching line: ${takeHead(line, lineLimit)}]`]),
    ...(expression !== undefined && line === undefined ? ["[No new line matches the pattern.]"] : []),
  );
}

function describeTimeout({ log }: Job, expression: RegExp | undefined, limitMs: number): string[] {
  const waited = `[Waited ${limitMs} ms`;
  if (expression === undefined) return [`${waited}; it has not ended.]`];
  const earlier = findLine(log.lastRead, expression);
  const hint = explainExpression(expression.source);
  return [
    `${waited}; no new line matches the pattern.]`,
    ...(earlier === undefined
      ? []
      : [`[A line that you have read before matches: ${takeHead(earlier, lineLimit)}]`]),
    ...(hint === undefined ? [] : [`[${hint}]`]),
  ];
}

/** Returns the first matching line. Throws {@link ToolFailure} if the search takes too long. */
function findLine(text: string, expression: RegExp): string | undefined {
  const lines = text.split("\n");
  if (lines.length === 1 && text === "") return undefined;
  const limit = createTimeLimit(
    searchMs,
    () =>
      new ToolFailure("The pattern takes too long to match. Use a simpler one, without nested repetitions."),
  );
  return limit(() => lines.filter((line) => expression.test(line)).slice(0, 1))[0];
}

async function write(job: Job, line: string, earlier: string): Promise<ToolResult> {
  const { input } = job;
  if (input === undefined || input.text !== earlier)
    throw new ToolFailure("Not written: the job got other input meanwhile. Call it again.");
  const { changed } = job.log;
  const isTaken = await input.write(line);
  await orAfter(Promise.race([changed, job.ended]), answerMs, undefined);
  let isQuiet = job.end !== undefined;
  for (const start = Date.now(); !isQuiet && Date.now() - start < answerMs;)
    isQuiet =
      (await orAfter(Promise.race([job.log.changed, job.ended]), quietMs, "quiet")) === "quiet" ||
      job.end !== undefined;
  return report(job, ...(isTaken ? [] : ["[The program has not read the input yet.]"]));
}

async function stop(job: Job): Promise<ToolResult> {
  job.stop("model");
  await orAfter(job.ended, stopMs, undefined);
  return report(job);
}
