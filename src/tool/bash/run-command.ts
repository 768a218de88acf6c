import type { Writable } from "node:stream";
import { deferred, orAfter, sleep } from "../../base/async.ts";
import { messageOf } from "../../base/errors.ts";
import { toTraceVariables } from "../../message/trace-context.ts";
import type { ShownText } from "../../shell/facts.ts";
import type { TrackedCommand } from "../../workspace/changes/command-changes.ts";
import type { ProcessOutcome } from "../../workspace/process/process.ts";
import type { JobLog } from "../job/job-log.ts";
import type { JobInput, JobWork, StartedJob, WorkEnd } from "../job/jobs.ts";
import { noteShownText } from "../shown-files.ts";
import { type RunContext, type ToolContext, ToolFailure, type ToolResult } from "../tool.ts";
import { BashOutput, type OutputResult } from "./bash-output.ts";
import { describeExit, endNote, nothingPrinted } from "./command-end.ts";
import { omitOthersChanges, recordChanges, type RecordedChanges } from "./record-changes.ts";
import type { Blocked, Confined, Explanation } from "./sandboxed-command.ts";

/** Longest time limit that a call may set. */
export const maxTimeoutMs = 600_000;
/** Time for the first output of a job. */
const firstOutputMs = 1_500;
/** The first output is complete after this much silence. */
const quietMs = 300;
/** Time for a program to take its input. */
const inputMs = 1_000;

interface CommandInput {
  readonly command: string;
  readonly timeout?: number | undefined;
  readonly background?: boolean | undefined;
}

interface CommandPlace {
  readonly cwd: string;
  /** The files whose text it prints. */
  readonly shown: readonly ShownText[];
  /** Undefined for a command that changes no files. */
  readonly tracked: TrackedCommand | undefined;
  /** The sandbox in which it runs. */
  readonly confined: Confined | undefined;
}

/** The result of a run, and what the sandbox blocked in it. */
interface RunResult {
  readonly result: ToolResult;
  readonly blocked: Blocked | undefined;
}

/**
 * Runs a command until its end, or until it becomes a job: at once with `background`, else after the session's limit for
 * calls without a time limit.
 */
export function runCommand(
  input: CommandInput,
  place: CommandPlace,
  context: ToolContext,
  run: RunContext,
): Promise<RunResult> {
  return new CommandRun(input, place, context, run).run();
}

class CommandRun {
  readonly #input: CommandInput;
  readonly #place: CommandPlace;
  readonly #context: ToolContext;
  readonly #run: RunContext;
  readonly #output: BashOutput;
  readonly #stop = new AbortController();
  readonly #startedAt = Date.now();
  readonly #startTime = performance.now();
  #printed = deferred<void>();
  #stdin: Writable | undefined;
  #job: StartedJob | undefined;

  constructor(input: CommandInput, place: CommandPlace, context: ToolContext, run: RunContext) {
    this.#input = input;
    this.#place = place;
    this.#context = context;
    this.#run = run;
    this.#output = new BashOutput({
      limits: run.limits,
      show: (delta) => (this.#job === undefined ? run.output(delta) : this.#job.show(delta)),
      waitUntilReady: () => run.waitUntilReady(),
    });
  }

  async run(): Promise<RunResult> {
    const { signal } = this.#run;
    const cancel = () => this.#stop.abort();
    signal.addEventListener("abort", cancel, { once: true });
    if (signal.aborted) cancel();
    try {
      const running = this.#start();
      const outcome = await Promise.race([running, this.#waitForLimit(running)]);
      if (outcome !== undefined) return await this.#end(outcome);
      const isStartable = !signal.aborted && this.#context.jobs.findRefusal("command") === undefined;
      if (isStartable) return { result: await this.#continueAsJob(running), blocked: undefined };
      cancel();
      return await this.#end({ ...(await running), end: signal.aborted ? "cancelled" : "timed-out" });
    } finally {
      signal.removeEventListener("abort", cancel);
      if (this.#job === undefined) await this.#output.close();
    }
  }

  #start(): Promise<ProcessOutcome> {
    const { command, timeout, background = false } = this.#input;
    const { trace, workspace } = this.#context;
    return workspace.processes.run({
      command,
      cwd: this.#place.cwd,
      signal: this.#stop.signal,
      env: trace && toTraceVariables(trace),
      confine: this.#place.confined?.confine,
      ...(!background && timeout !== undefined && { timeoutMs: Math.min(timeout, maxTimeoutMs) }),
      ...(background && { onStart: (stdin: Writable) => (this.#stdin = stdin) }),
      onOutput: async (chunk) => {
        await this.#output.push(chunk);
        this.#printed.resolve();
        this.#printed = deferred();
      },
    });
  }

  /** Resolves when the command becomes a job; never if the call sets a time limit. */
  async #waitForLimit(running: Promise<unknown>): Promise<undefined> {
    const { timeout, background = false } = this.#input;
    const ended = new AbortController();
    running.then(
      () => ended.abort(),
      () => ended.abort(),
    );
    if (background) await this.#waitForFirstOutput(ended.signal);
    else if (timeout === undefined) await sleep(this.#context.jobs.foregroundSeconds * 1_000, ended.signal);
    if (ended.signal.aborted || (!background && timeout !== undefined)) return new Promise(() => {});
    return undefined;
  }

  async #waitForFirstOutput(ended: AbortSignal): Promise<void> {
    const limit = AbortSignal.any([ended, AbortSignal.timeout(firstOutputMs)]);
    const next = () => Promise.race([this.#printed.promise.then(() => true), sleep(firstOutputMs, limit)]);
    await next();
    while (!limit.aborted && (await orAfter(next(), quietMs, "quiet")) === true);
  }

  async #end(outcome: ProcessOutcome): Promise<RunResult> {
    const { shown, tracked } = this.#place;
    const { seen } = this.#context;
    const printed = await this.#output.end();
    const isComplete = outcome.exitCode === 0 && outcome.end === "exited" && !printed.truncated;
    if (shown.length > 0 && isComplete)
      await noteShownText(seen, shown, { text: printed.text, start: this.#startedAt });
    const { blocked, notes: sandboxNotes } = await this.#describeSandbox(outcome, printed.text);
    const notes = [...endNotes(outcome, { seconds: this.#seconds, limit: this.#limit }), ...sandboxNotes];
    if (outcome.end === "timed-out" || outcome.background || sandboxNotes.length > 0)
      this.#output.note(notes);
    const recorded = tracked && (await this.#record(tracked));
    return { result: addChanges(toResult(outcome, printed, notes), recorded), blocked };
  }

  /** Records the changes of the command, and notes them for other sessions. */
  async #record(tracked: TrackedCommand): Promise<RecordedChanges> {
    const { workspace, recent } = this.#context;
    const { files, notes } = await tracked.finish();
    const own = await omitOthersChanges(files, recent, this.#startedAt);
    const recorded = await recordChanges({ files: own, notes }, workspace.snapshots);
    await recent.note(recorded.changes);
    return recorded;
  }

  async #describeSandbox(outcome: ProcessOutcome, text: string): Promise<Explanation> {
    const explained = await this.#place.confined?.explain(text, outcome);
    return explained ?? { blocked: undefined, notes: [] };
  }

  async #continueAsJob(running: Promise<ProcessOutcome>): Promise<ToolResult> {
    const { tracked, cwd } = this.#place;
    const { jobs } = this.#context;
    const { command, background = false } = this.#input;
    const log = this.#output.follow();
    const printed = await this.#output.soFar();
    log.noteRead(printed.text);
    const work: JobWork = {
      kind: "command",
      title: command,
      folder: cwd,
      startedAt: this.#startedAt,
      log,
      input: this.#stdin && new CommandInputPipe(this.#stdin),
      ended: this.#endJob(running, log).finally(() => log.end()),
      stop: () => this.#stop.abort(),
      readOutput: async () => (await this.#output.soFar()).text,
      saveOutput: async () => (await this.#output.soFar()).path,
    };
    const job = jobs.start(work);
    this.#job = job;
    const recorded = tracked && (await this.#record(tracked));
    const notes = [
      ...(printed.note === undefined ? [] : [printed.note]),
      background ? startNote(job.id) : limitNote(job.id, this.#seconds),
    ];
    const result: ToolResult = {
      status: "completed",
      output: printed.text.trimEnd() || "(no output yet)",
      notes: notes.join("\n\n"),
      metadata: { job: job.id, truncated: printed.truncated, outputPath: printed.path },
      job,
    };
    const unknown = tracked && `what it changes after it became job ${job.id} is not recorded`;
    return addChanges(
      result,
      recorded && {
        ...recorded,
        notUndone: [...recorded.notUndone, ...(unknown === undefined ? [] : [unknown])],
      },
    );
  }

  /** Waits for the end of the command. Never rejects. */
  async #endJob(running: Promise<ProcessOutcome>, log: JobLog): Promise<WorkEnd> {
    try {
      const outcome = await running;
      const { text, note } = await this.#output.end();
      const { notes } = await this.#describeSandbox(outcome, text);
      if (notes.length > 0) log.add(`\n${notes.join("\n")}\n`, "");
      const { exitCode, signalName, end } = outcome;
      const isStopped = end === "cancelled";
      const background = outcome.background ? `, ${leftRunning}` : "";
      return {
        state: exitCode === 0 ? "completed" : isStopped ? "stopped" : "failed",
        description: `${isStopped ? "was stopped" : (outcome.error ?? `ended with ${describeExit(exitCode, signalName)}`)}${background}`,
        output: [...(note === undefined ? [] : [note]), text.trimEnd() || nothingPrinted, ...notes].join(
          "\n\n",
        ),
        exitCode,
        signal: signalName,
      };
    } catch (error) {
      this.#stop.abort();
      return { state: "failed", description: `failed: ${messageOf(error)}`, output: "" };
    } finally {
      await this.#output.close();
    }
  }

  get #seconds(): string {
    return ((performance.now() - this.#startTime) / 1_000).toFixed(1);
  }

  /** The time limit in milliseconds. */
  get #limit(): number {
    const { timeout } = this.#input;
    return timeout === undefined
      ? this.#context.jobs.foregroundSeconds * 1_000
      : Math.min(timeout, maxTimeoutMs);
  }
}

/** The open stdin of a command. */
class CommandInputPipe implements JobInput {
  readonly #stdin: Writable;
  #text = "";

  constructor(stdin: Writable) {
    this.#stdin = stdin;
  }

  get text(): string {
    return this.#text;
  }

  get isOpen(): boolean {
    return this.#stdin.writable;
  }

  async write(text: string): Promise<boolean> {
    this.#text += text;
    const written = new Promise<boolean>((resolve) => {
      this.#stdin.write(text, (error) => resolve(error === null || error === undefined));
    });
    return orAfter(written, inputMs, false);
  }
}

interface Timing {
  /** Run time. */
  seconds: string;
  /** Milliseconds. */
  limit: number;
}

function startNote(id: number): string {
  return `[It runs in the background as job ${id}. Use the job tool to read its output, wait for it, write to it or stop it.]`;
}

function limitNote(id: number, seconds: string): string {
  return `[It still runs after ${seconds} s and continues in the background as job ${id}. Wait for it or stop it with the job tool; its input is closed.]`;
}

function toResult(outcome: ProcessOutcome, shown: OutputResult, notesOfEnd: readonly string[]): ToolResult {
  if (outcome.end === "failed-to-start")
    throw new ToolFailure(
      `${outcome.error ?? "The command could not be started."} Check workdir and the shell, or tell the user.`,
    );
  const output = shown.text.trimEnd() || nothingPrinted;
  const notes = [...(shown.note === undefined ? [] : [shown.note]), ...notesOfEnd].join("\n\n");
  const { exitCode, signalName } = outcome;
  const metadata = {
    exitCode,
    ...(signalName !== null && { signal: signalName }),
    truncated: shown.truncated,
    outputPath: shown.path,
  };
  const result = { ...(notes !== "" && { notes }), metadata };
  if (outcome.end === "cancelled") return { status: "failed", error: output, ...result };
  return { status: "completed", output, ...result };
}

function addChanges(result: ToolResult, recorded: RecordedChanges | undefined): ToolResult {
  if (recorded === undefined) return result;
  const { changes, notUndone } = recorded;
  return {
    ...result,
    ...(changes.length > 0 && { changes }),
    ...(notUndone.length > 0 && { metadata: { ...result.metadata, notUndone } }),
  };
}

const leftRunning = "and processes that it started still run";

function endNotes(outcome: ProcessOutcome, timing: Timing): string[] {
  const background = outcome.background
    ? [
        "[Processes that it started still run in the background, unseen. To read or stop such a process, start it with background: true and without &.]",
      ]
    : [];
  return [...describeEnd(outcome, timing), ...background];
}

function describeEnd({ end, exitCode, signalName }: ProcessOutcome, { seconds, limit }: Timing): string[] {
  if (end === "cancelled") return [`[Cancelled after ${seconds} s; above is what it had printed.]`];
  if (end === "timed-out") {
    const advice = `If it needs longer, give a larger timeout (${maxTimeoutMs} at most) or background: true.`;
    return [
      `[Ended after ${seconds} s because its time of ${limit} ms was up; above is what it had printed. ${advice}]`,
    ];
  }
  const note = endNote(exitCode, signalName);
  return note === undefined ? [] : [note];
}
