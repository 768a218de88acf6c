import { hasRunningJob, type ToolPart } from "../message/part.ts";
import type { SessionJobs, SessionJobsDeps } from "./session-jobs.ts";
import type { Job } from "../tool/job/jobs.ts";

/** The jobs of a session, whose code loads with the first turn or replay that needs it. */
export class LazyJobs {
  readonly #deps: SessionJobsDeps;
  #loaded: SessionJobs | undefined;

  constructor(deps: SessionJobsDeps) {
    this.#deps = deps;
  }

  async load(): Promise<SessionJobs> {
    const { SessionJobs } = await import("./session-jobs.ts");
    this.#loaded ??= new SessionJobs(this.#deps);
    return this.#loaded;
  }

  /** Running jobs, and some that ended, oldest first. */
  get all(): readonly Job[] {
    return this.#loaded?.all ?? [];
  }

  /** Running jobs that continue when the user closes the session. */
  get kept(): readonly Job[] {
    return this.all.filter(({ isKept, end }) => isKept && end === undefined);
  }

  /** Returns the running job of a call. */
  findRunning(callId: string): Job | undefined {
    return this.#loaded?.findRunning(callId);
  }

  /** Returns a call as it is now, for a replay. */
  async describeCall(part: ToolPart): Promise<ToolPart> {
    return hasRunningJob(part.state) ? (await this.load()).describeCall(part) : part;
  }

  /** Number of tasks that ended and whose reports the model has not received. */
  get unreportedTasks(): number {
    return this.#loaded?.unreportedTasks ?? 0;
  }

  /** Shows the user the ends that the model does not know. Called when no turn follows. */
  noticeEnds(): void {
    this.#loaded?.noticeEnds();
  }

  /** Stops the jobs that the user does not keep, and waits until their ends are stored. */
  async stopOthers(): Promise<void> {
    await this.#loaded?.stopOthers();
  }

  /** Stops all jobs and waits until their ends are stored. */
  async close(): Promise<void> {
    await this.#loaded?.close();
  }
}
