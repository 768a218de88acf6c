import { deferred, type Deferred } from "../base/async.ts";
import { errorFields } from "../base/error-fields.ts";
import type { Log } from "../base/log.ts";
import type { Config } from "../config/schema.ts";
import {
  findCarriedJobId,
  listCarriedJobs,
  loadCarriedCalls,
  type StoredCall,
} from "../context/carried-jobs.ts";
import type { Transcript } from "../conversation/transcript.ts";
import type { Emit } from "../message/event.ts";
import type { MessageId, SessionId } from "../message/ids.ts";
import type { Message } from "../message/message.ts";
import {
  createLostEnd,
  endJob,
  type FileChange,
  hasRunningJob,
  type JobEnd,
  type JobRecord,
  type Part,
  type ToolPart,
} from "../message/part.ts";
import type { Job, JobKind, Jobs, JobWork, StartedJob, Stopper, WorkEnd } from "../tool/job/jobs.ts";

/** Default numbers of jobs that run at the same time. */
const defaultLimits: Readonly<Record<JobKind, number>> = { command: 8, task: 4 };
/** Default seconds after which a command without a time limit becomes a job. */
const defaultForegroundSeconds = 120;
/** Ended jobs whose output can still be read. */
const endedLimit = 20;
/** Characters of live output until the call is answered. */
const earlyOutputLimit = 64 * 1024;

export interface SessionJobsDeps {
  sessionId: SessionId;
  transcript: Pick<Transcript, "messages" | "amendParts">;
  /** All messages of the session, newest first. */
  messagesFromNewest(): AsyncIterable<Message>;
  config(): Config;
  emit: Emit;
  log: Log;
  /** Whether a turn runs or waits. */
  isBusy(): boolean;
  /** Called when a job ended and its changes were added to its call. */
  onChanged(messageId: MessageId, changes: readonly FileChange[]): Promise<void>;
}

/** The jobs of a session: numbers them, shows their output, and stores and announces their ends. */
export class SessionJobs implements Jobs {
  readonly #deps: SessionJobsDeps;
  readonly #jobs = new Map<number, LiveJob>();
  #newestId: number | undefined;
  /** Whether the jobs of compacted messages were reported. */
  #hasTakenCarried = false;
  #isClosed = false;

  constructor(deps: SessionJobsDeps) {
    this.#deps = deps;
  }

  get all(): readonly LiveJob[] {
    return [...this.#jobs.values()];
  }

  get foregroundSeconds(): number {
    return this.#deps.config().jobs?.foreground_seconds ?? defaultForegroundSeconds;
  }

  findRefusal(kind: JobKind): string | undefined {
    if (this.#isClosed) return "The session is closing.";
    const { jobs = {} } = this.#deps.config();
    const limit = (kind === "command" ? jobs.commands : jobs.tasks) ?? defaultLimits[kind];
    const running = this.all.filter((job) => job.kind === kind && job.end === undefined);
    if (running.length < limit) return undefined;
    const ids = running.map(({ id }) => id).join(", ");
    return limit === 0
      ? `The configuration allows no background ${kind}s (jobs.${kind}s). Run it without background.`
      : `${limit} background ${kind}s already run, as jobs ${ids}, and no more are allowed. Stop one, or wait for its end.`;
  }

  start(work: JobWork): StartedJob {
    this.#newestId = (this.#newestId ?? this.#findNewestId()) + 1;
    const job: LiveJob = new LiveJob(this.#newestId, work, {
      show: (callId, delta) =>
        this.#deps.emit({ sessionId: this.#deps.sessionId, type: "job-output", callId, delta }),
      amend: (messageId, part) => this.#amend(messageId, part),
      onChanged: (messageId, changes) => this.#noteChanges(messageId, changes),
      onEnded: (settled) => this.#onEnded(job, settled),
    });
    this.#jobs.set(job.id, job);
    return job;
  }

  /** Returns the running job of a call. */
  findRunning(callId: string): LiveJob | undefined {
    return this.all.find((job) => job.call?.part.callId === callId && job.end === undefined);
  }

  /** Returns a call as it is now, for a replay: with the output of its job so far, or with the end of a lost job. */
  async describeCall(part: ToolPart): Promise<ToolPart> {
    const { state } = part;
    if (state.status !== "completed" || !hasRunningJob(state)) return part;
    const job = this.findRunning(part.callId);
    if (job === undefined) return endJob(part, createLostEnd(part));
    const output = await job.readOutput();
    return { ...part, state: { ...state, output } };
  }

  /** Returns a description of ended jobs for the model, which does not know about them; undefined if there are none. */
  async takeReport(): Promise<string | undefined> {
    const ended = this.all.filter((job) => job.isUnreported);
    const stored = await this.#findStoredEnds();
    if (ended.length + stored.length === 0) return undefined;
    const { describeEnds } = await import("./job-report.ts");
    const text = describeEnds(
      ended,
      stored.map(({ part }) => part),
    );
    for (const job of ended) await job.noteReported();
    for (const { messageId, part, end } of stored)
      await this.#amend(messageId, endJob(part, { ...end, isReported: true }));
    return text;
  }

  /** Number of tasks that ended and whose reports the model has not received. */
  get unreportedTasks(): number {
    return this.all.filter((job) => job.kind === "task" && job.isUnreported).length;
  }

  /** Shows the user the ends that the model does not know. Called when no turn follows. */
  noticeEnds(): void {
    if (this.#isClosed) return;
    for (const job of this.all) if (job.isUnreported) this.#notice(job);
  }

  /** Stops all jobs and waits until their ends are stored. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await stopWithSession(this.all);
  }

  /** Stops the jobs that the user does not keep, and waits until their ends are stored. */
  async stopOthers(): Promise<void> {
    await stopWithSession(this.all.filter(({ isKept }) => !isKept));
  }

  #onEnded(job: LiveJob, settled: { messageId: MessageId; part: ToolPart } | undefined): void {
    const { emit, sessionId } = this.#deps;
    if (settled === undefined) this.#jobs.delete(job.id);
    else emit({ sessionId, type: "job-ended", ...settled });
    const ended = this.all.filter(({ end }) => end !== undefined);
    for (const { id } of ended.slice(0, -endedLimit)) this.#jobs.delete(id);
    if (!this.#deps.isBusy()) this.noticeEnds();
  }

  #notice(job: LiveJob): void {
    if (job.isNoticed || job.end === undefined) return;
    job.isNoticed = true;
    const { emit, sessionId } = this.#deps;
    const text = `Job ${job.id} (${job.shortTitle}) ${job.end.description}. The model learns of it with your next message.`;
    emit({ sessionId, type: "notice", severity: "info", text, isOfJob: true });
  }

  async #amend(messageId: MessageId, part: ToolPart): Promise<void> {
    try {
      await this.#deps.transcript.amendParts(messageId, [part]);
    } catch (error) {
      this.#deps.log.error("end of job not stored", { callId: part.callId, ...errorFields(error) });
    }
  }

  async #noteChanges(messageId: MessageId, changes: readonly FileChange[]): Promise<void> {
    try {
      await this.#deps.onChanged(messageId, changes);
    } catch (error) {
      this.#deps.log.error("changes of job not counted", { messageId, ...errorFields(error) });
    }
  }

  /** Ends that an earlier process stored without telling the model. */
  async #findStoredEnds() {
    const live = new Set(this.all.map(({ call }) => call?.part.callId));
    return [...(await this.#takeCarriedCalls()), ...listJobCalls(this.#deps.transcript.messages)].flatMap(
      ({ messageId, part, job: { end } }) =>
        end === undefined || end.isReported === true || live.has(part.callId)
          ? []
          : [{ messageId, part, end }],
    );
  }

  /** Returns the calls of jobs that compacted messages contain, once: later ends are those of this process. */
  async #takeCarriedCalls(): Promise<JobCall[]> {
    if (this.#hasTakenCarried) return [];
    this.#hasTakenCarried = true;
    const jobs = listCarriedJobs(this.#deps.transcript.messages);
    const calls = await loadCarriedCalls(jobs, () => this.#deps.messagesFromNewest());
    return calls.flatMap(({ messageId, part }) => toJobCall(messageId, part));
  }

  #findNewestId(): number {
    const { messages } = this.#deps.transcript;
    return Math.max(findCarriedJobId(messages), ...listJobCalls(messages).map(({ job }) => job.id));
  }
}

async function stopWithSession(jobs: readonly LiveJob[]): Promise<void> {
  const running = jobs.filter(({ end }) => end === undefined);
  for (const job of running) job.stop("session");
  await Promise.all(running.map((job) => job.ended));
}

interface JobCall extends StoredCall {
  readonly job: JobRecord;
}

/** Creates no list for each part: each step of a long turn reads all parts, and most are not jobs. */
function listJobCalls(messages: readonly Message[]): JobCall[] {
  const calls: JobCall[] = [];
  for (const { info, parts } of messages)
    for (const part of parts) if (part.type === "tool") calls.push(...toJobCall(info.id, part));
  return calls;
}

function toJobCall(messageId: MessageId, part: Part): JobCall[] {
  return part.type === "tool" && part.state.status === "completed" && part.state.job !== undefined
    ? [{ messageId, part, job: part.state.job }]
    : [];
}

/** Characters of a title in notices and lists. */
const titleLimit = 80;

interface LiveJobDeps {
  show(callId: string, delta: string): void;
  amend(messageId: MessageId, part: ToolPart): Promise<void>;
  onChanged(messageId: MessageId, changes: readonly FileChange[]): Promise<void>;
  onEnded(settled: { messageId: MessageId; part: ToolPart } | undefined): void;
}

/** A job of this process. */
export class LiveJob implements Job, StartedJob {
  readonly id: number;
  readonly #work: JobWork;
  readonly #deps: LiveJobDeps;
  readonly #ended = deferred<void>();
  readonly #settled: Deferred<{ messageId: MessageId; part: ToolPart } | undefined> = deferred();
  #call: { messageId: MessageId; part: ToolPart } | undefined;
  #early = "";
  #stopper: Stopper | undefined;
  #isReported = false;
  end: JobEnd | undefined;
  /** Whether the user was shown a notice of the end. */
  isNoticed = false;
  isKept = false;

  constructor(id: number, work: JobWork, deps: LiveJobDeps) {
    this.id = id;
    this.#work = work;
    this.#deps = deps;
    void this.#waitForEnd();
  }

  /** Undefined until the call is answered. */
  get call() {
    return this.#call;
  }

  get kind() {
    return this.#work.kind;
  }

  get title() {
    return this.#work.title;
  }

  get shortTitle(): string {
    const line = this.title.replaceAll(/\s+/g, " ");
    return line.length <= titleLimit ? line : `${line.slice(0, titleLimit)}…`;
  }

  get folder() {
    return this.#work.folder;
  }

  get startedAt() {
    return this.#work.startedAt;
  }

  get log() {
    return this.#work.log;
  }

  get input() {
    return this.#work.input;
  }

  get ended(): Promise<void> {
    return this.#ended.promise;
  }

  /** Whether the job ended and the model does not know yet. */
  get isUnreported(): boolean {
    return this.end !== undefined && this.#call !== undefined && !this.#isReported;
  }

  readOutput(): Promise<string> {
    return this.#work.readOutput();
  }

  saveOutput(): Promise<string | undefined> {
    return this.#work.saveOutput();
  }

  keep(): void {
    this.isKept = true;
  }

  stop(by: Stopper): void {
    if (this.end !== undefined) return;
    this.#stopper ??= by;
    this.#work.stop();
  }

  show(delta: string): void {
    if (this.#call !== undefined) return this.#deps.show(this.#call.part.callId, delta);
    this.#early = (this.#early + delta).slice(-earlyOutputLimit);
  }

  settle(messageId: MessageId, part: ToolPart): void {
    this.#call = { messageId, part };
    if (this.#early !== "") this.#deps.show(part.callId, this.#early);
    this.#early = "";
    this.#settled.resolve(this.#call);
  }

  discard(): void {
    this.#isReported = true;
    this.stop("session");
    this.#settled.resolve(undefined);
  }

  async noteReported(): Promise<void> {
    if (this.#isReported) return;
    this.#isReported = true;
    if (this.#call === undefined || this.end === undefined) return;
    this.end = { ...this.end, isReported: true };
    this.#call = { ...this.#call, part: endJob(this.#call.part, this.end) };
    await this.#deps.amend(this.#call.messageId, this.#call.part);
  }

  async #waitForEnd(): Promise<void> {
    const { changes, metadata, ...end } = await this.#work.ended;
    const call = await this.#settled.promise;
    this.end = { ...this.#describe(end), time: Date.now() };
    if (call !== undefined) {
      const part = addToCall(endJob(call.part, this.end), { changes, metadata });
      this.#call = { ...call, part };
      await this.#deps.amend(call.messageId, part);
      if (changes !== undefined && changes.length > 0) await this.#deps.onChanged(call.messageId, changes);
    }
    this.#deps.onEnded(this.#call);
    this.#ended.resolve();
  }

  #describe(end: Omit<JobEnd, "time">): Omit<JobEnd, "time"> {
    if (this.#stopper === undefined || end.state === "completed") return end;
    const by = this.#stopper === "session" ? "with the session" : `by the ${this.#stopper}`;
    return { ...end, state: "stopped", description: `was stopped ${by}` };
  }
}

function addToCall(part: ToolPart, { changes, metadata }: Pick<WorkEnd, "changes" | "metadata">): ToolPart {
  const { state } = part;
  if (state.status !== "completed") return part;
  return {
    ...part,
    state: {
      ...state,
      ...(changes !== undefined && changes.length > 0 && { changes: [...(state.changes ?? []), ...changes] }),
      ...(metadata !== undefined && { metadata: { ...state.metadata, ...metadata } }),
    },
  };
}
