import { childProcess } from "./child-process.ts";
import type { Environment } from "./find-program.ts";

export interface GitResult {
  readonly exitCode: number;
  readonly stdout: Buffer;
  readonly stderr: string;
}

export interface GitRun {
  readonly cwd: string;
  readonly env: Environment;
  /** Maximum bytes of each output. */
  readonly limitBytes: number;
  readonly timeLimitMs: number;
  readonly input?: string | undefined;
}

/** Characters of git's message in an error. */
const messageLimit = 500;

export class GitError extends Error {
  override readonly name = "GitError";
}

/** Runs git without a shell. `program` is its path. Rejects if git was ended by a limit or a signal. */
export function runGit(program: string, args: readonly string[], run: GitRun): Promise<GitResult> {
  return new Promise((resolve, reject) => {
    const child = childProcess().execFile(
      program,
      ["-c", "core.fsmonitor=false", ...args],
      {
        cwd: run.cwd,
        env: run.env,
        maxBuffer: run.limitBytes,
        timeout: run.timeLimitMs,
        killSignal: "SIGKILL",
        encoding: "buffer",
        windowsHide: true,
      },
      (error, stdout, stderr) => {
        const exitCode = error === null ? 0 : error.code;
        if (typeof exitCode === "number") resolve({ exitCode, stdout, stderr: stderr.toString("utf8") });
        else reject(error);
      },
    );
    // A git that ends early reports its own error.
    child.stdin?.on("error", () => {});
    child.stdin?.end(run.input ?? "");
  });
}

/** Explains why git failed. */
export function gitFailure([command = ""]: readonly string[], { exitCode, stderr }: GitResult): GitError {
  const message = stderr.trim().slice(0, messageLimit);
  return new GitError(`git ${command}: ${message || `exit code ${exitCode}`}`);
}
