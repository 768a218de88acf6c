import type { Environment } from "../process/find-program.ts";
import { gitFailure, runGit } from "../process/run-git.ts";

/** Runs git. Resolves to its output; rejects if it fails or prints more than the limit. */
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
  return async (args, { cwd, limitBytes, input, env: more, emptyCode }) => {
    const variables = { ...env(), GIT_OPTIONAL_LOCKS: "0", GIT_NO_LAZY_FETCH: "1", ...more };
    const result = await runGit(program, args, { cwd, env: variables, limitBytes, timeLimitMs, input });
    if (result.exitCode === 0 || result.exitCode === emptyCode) return result.stdout;
    throw gitFailure(args, result);
  };
}
