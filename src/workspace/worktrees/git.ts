import { type Environment, findProgram } from "../process/find-program.ts";
import { GitError, gitFailure, type GitResult, runGit } from "../process/run-git.ts";

/** Time for one git command; a checkout of a large repository takes minutes. */
const timeLimitMs = 10 * 60_000;
const limitBytes = 256 * 1024 * 1024;

export interface GitOptions {
  readonly env?: Environment;
  readonly input?: string;
}

/** Variables with which git would work in another repository than that of the folder. */
const placeVariables = ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_COMMON_DIR", "GIT_PREFIX"];

/** Commits that record a state are the program's own. */
const identity = {
  GIT_AUTHOR_NAME: "Fairlead",
  GIT_AUTHOR_EMAIL: "fairlead@localhost",
  GIT_COMMITTER_NAME: "Fairlead",
  GIT_COMMITTER_EMAIL: "fairlead@localhost",
};

/** Runs git in one folder, without a shell and without the repository's hooks. */
export class Git {
  readonly #folder: string;
  readonly #program: string;
  readonly #env: () => Environment;

  private constructor(folder: string, program: string, env: () => Environment) {
    this.#folder = folder;
    this.#program = program;
    this.#env = env;
  }

  /** Throws {@link GitError} if git is not installed. */
  static async open(folder: string, env: () => Environment): Promise<Git> {
    const program = await findProgram("git", env());
    if (program === undefined) throw new GitError("git was not found on the PATH");
    return new Git(folder, program, env);
  }

  /** Returns the output without the line end. Throws {@link GitError} if git fails. */
  async text(args: readonly string[], options?: GitOptions): Promise<string> {
    return (await this.bytes(args, options)).toString("utf8").trimEnd();
  }

  /** Throws {@link GitError} if git fails. */
  async bytes(args: readonly string[], options?: GitOptions): Promise<Buffer> {
    const result = await this.run(args, options);
    if (result.exitCode === 0) return result.stdout;
    throw gitFailure(args, result);
  }

  run(args: readonly string[], { env, input }: GitOptions = {}): Promise<GitResult> {
    const inherited = Object.entries(this.#env()).filter(([name]) => !placeVariables.includes(name));
    return runGit(this.#program, ["-c", "core.hooksPath=/dev/null", ...args], {
      cwd: this.#folder,
      env: { ...Object.fromEntries(inherited), ...identity, GIT_TERMINAL_PROMPT: "0", ...env },
      limitBytes,
      timeLimitMs,
      input,
    });
  }
}
