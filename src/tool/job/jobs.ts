import type { MessageId } from "../../message/ids.ts";
import type { FileChange, JobEnd, ToolPart } from "../../message/part.ts";
import type { JobLog } from "./job-log.ts";

/** Who stops a job. */
export type Stopper = "user" | "model" | "session";

export type JobKind = "command" | "task";

/** Work that continues after its call was answered. */
export interface JobWork {
  readonly kind: JobKind;
  /** The command line, or a task in a few words. */
  readonly title: string;
  /** The folder in which a command runs. */
  readonly folder?: string;
  /** Milliseconds since 1970. */
  readonly startedAt: number;
  readonly log: JobLog;
  /** Undefined if it takes no input. */
  readonly input?: JobInput | undefined;
  /** Resolves when the work has ended. Must not reject. */
  readonly ended: Promise<WorkEnd>;
  stop(): void;
  /** Returns the whole output so far, or the end of it, for the user. */
  readOutput(): Promise<string>;
  /** Saves the whole output and returns its file; undefined if it is short. */
  saveOutput(): Promise<string | undefined>;
}

export interface JobInput {
  /** The text written so far. */
  readonly text: string;
  /** Whether the program can still read it. */
  readonly isOpen: boolean;
  /** Returns false if the program does not read its input at the moment. */
  write(text: string): Promise<boolean>;
}

/** The end of a job's work. */
export type WorkEnd = Omit<JobEnd, "time" | "isReported"> & {
  /** Changes to add to the call. */
  readonly changes?: readonly FileChange[];
  /** Replaces the metadata of the call. */
  readonly metadata?: Readonly<Record<string, unknown>>;
};

/** A running job, or one that ended a short while ago. */
export interface Job extends Omit<JobWork, "stop" | "ended"> {
  readonly id: number;
  /** Undefined until the call is answered. */
  readonly call: { readonly messageId: MessageId; readonly part: ToolPart } | undefined;
  /** Undefined while it runs. */
  readonly end: JobEnd | undefined;
  /** Resolves when it has ended. */
  readonly ended: Promise<void>;
  /** Whether it continues when the user closes the session. */
  readonly isKept: boolean;
  keep(): void;
  stop(by: Stopper): void;
  /** Called when the model was given the end. */
  noteReported(): Promise<void>;
}

/** A job whose call is not answered yet. */
export interface StartedJob {
  readonly id: number;
  /** Shows live output. */
  show(delta: string): void;
  /** Called when the call was answered and stored. */
  settle(messageId: MessageId, part: ToolPart): void;
  /** Called if the call was cancelled meanwhile: ends the job. */
  discard(): void;
}

/** The jobs of a session. */
export interface Jobs {
  /** Running jobs, and some that ended, oldest first. */
  readonly all: readonly Job[];
  /** Returns why no more of a kind can start; undefined if one can. */
  findRefusal(kind: JobKind): string | undefined;
  start(work: JobWork): StartedJob;
  /** Seconds after which a command without a time limit becomes a job. */
  readonly foregroundSeconds: number;
}
