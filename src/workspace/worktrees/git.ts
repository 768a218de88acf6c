import { childProcess } from "../process/child-process.ts";
import { type Environment, findProgram } from "../process/find-program.ts";

/** Time for one git command; a checkout of a large repository takes minutes. */
const timeLimitMs = 10 * 60_000;
const outputLimitBytes = 256 * 1024 * 1024;
/** Characters of git's message in an error. */
const messageLimit = 500;

export interface GitResult {
  readonly exitCode: number;
  readonly stdout: Buffer;
  readonly stderr: string;
}

export interface GitOptions {
  readonly env?: Environment;
  readonly input?: string;
}

export class GitError extends Error {
  override readonly name = "GitError";
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
    const { exitCode, stdout, stderr } = await this.run(args, options);
    if (exitCode === 0) return stdout;
    const message = stderr.trim().slice(0, messageLimit);
    throw new GitError(`git ${args[0] ?? ""}: ${message || `exit code ${exitCode}`}`);
  }

  run(args: readonly string[], { env, input }: GitOptions = {}): Promise<GitResult> {
    const { promise, resolve, reject } = Promise.withResolvers<GitResult>();
    const inherited = Object.entries(this.#env()).filter(([name]) => !placeVariables.includes(name));
    const child = childProcess().execFile(
      this.#program,
      ["-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", ...args],
      {
        cwd: this.#folder,
        env: { ...Object.fromEntries(inherited), ...identity, GIT_TERMINAL_PROMPT: "0", ...env },
        maxBuffer: outputLimitBytes,
        timeout: timeLimitMs,
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
    child.stdin?.end(input ?? "");
    return promise;
  }
}
