import { childProcess } from "../process/child-process.ts";
import type { Environment } from "../process/find-program.ts";

/** Runs git without a shell. Resolves to its output; rejects if it fails or prints more than the limit. */
export type RunGit = (args: readonly string[], options: GitOptions) => Promise<Buffer>;

export interface GitOptions {
  readonly cwd: string;
  readonly limitBytes: number;
  readonly input?: string;
  readonly env?: Environment;
  /** Exit code that means that there is no output. */
  readonly emptyCode?: number;
}

/** Time after which a listing is abandoned. */
const timeLimitMs = 10_000;

/** `program` is git's path; `env` is that of commands. Git gets no locks and fetches nothing. */
export function gitRunner(program: string, env: () => Environment): RunGit {
  return (args, options) =>
    new Promise((resolve, reject) => {
      const child = childProcess().execFile(
        program,
        ["-c", "core.fsmonitor=false", ...args],
        {
          cwd: options.cwd,
          env: { ...env(), GIT_OPTIONAL_LOCKS: "0", GIT_NO_LAZY_FETCH: "1", ...options.env },
          maxBuffer: options.limitBytes,
          timeout: timeLimitMs,
          killSignal: "SIGKILL",
          encoding: "buffer",
          windowsHide: true,
        },
        (error, stdout) =>
          error === null || error.code === options.emptyCode ? resolve(stdout) : reject(error),
      );
      // A git that ends early reports its own error.
      child.stdin?.on("error", () => {});
      child.stdin?.end(options.input ?? "");
    });
}
