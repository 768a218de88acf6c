/** Shell commands, each in a process group of its own with stdin closed. */
export interface Processes {
  run(command: ShellCommand): Promise<ProcessOutcome>;
  /** Ends every process still running, TERM then KILL. For the program's own end. */
  endAll(): Promise<void>;
}

export interface ShellCommand {
  command: string;
  cwd: string;
  timeoutMs: number;
  signal: AbortSignal;
  /** Output as it comes, stdout and stderr in order of arrival, as valid text. Awaited: that is the back-pressure. */
  onOutput(text: string): Promise<void>;
}

export interface ProcessOutcome {
  end: "exited" | "timed-out" | "cancelled" | "failed-to-start";
  /** The exit code, null when a signal ended it or it never started. */
  exitCode: number | null;
  signalName: string | null;
  /** Why it could not start. */
  error?: string;
  /** Whether processes that it left in the background still run. */
  background: boolean;
}
