import type { ChildProcessWithoutNullStreams } from "node:child_process";
import { once } from "node:events";
import type { Readable, Writable } from "node:stream";
import { orAfter, orWhenAborted } from "../../base/async.ts";
import { codeOf, messageOf, UserError } from "../../base/errors.ts";
import { isFolder, statOrUndefined } from "../../base/files/file-stat.ts";
import { childProcess } from "./child-process.ts";
import { type Environment, findProgram } from "./find-program.ts";
import type { Confine } from "./process.ts";
import { endWriting } from "./process-output.ts";
import { endTree, killGroup, PROCESS_MARK } from "./process-tree.ts";
import type { Watchdog } from "./watchdog.ts";
import type { SpawnedCommand } from "./windows-command.ts";

/** Starts programs with open stdin and stdout, each in its own process group. */
export interface PipedProcesses {
  /** Throws {@link UserError} if the program cannot be started; its message continues "…: ". */
  start(command: PipedCommand): Promise<PipedProcess>;
  /** Ends all running programs at program exit: TERM, then KILL. */
  endAll(): Promise<void>;
  /** Kills all programs immediately. */
  killAll(): void;
}

export interface PipedCommand {
  readonly command: string;
  readonly args: readonly string[];
  readonly cwd: string;
  /** Added to the environment of all commands. Configured explicitly, so nothing is removed. */
  readonly env: Environment;
  /** How a sandbox runs it; without it the program runs directly. Not for Windows. */
  readonly confine?: Confine | undefined;
  /** On Windows: the arguments are already quoted. */
  readonly verbatim?: boolean;
}

export interface PipedProcess {
  readonly input: Writable;
  readonly output: Readable;
  readonly errors: Readable;
  /** Resolves when the process has ended. */
  readonly exited: Promise<PipedExit>;
  /** Closes its input, waits briefly, then ends it with all its child processes. */
  end(): Promise<void>;
}

export interface PipedExit {
  readonly code: number | null;
  readonly signalName: string | null;
}

/** Time for a program to exit after its input ended; then it gets TERM. */
const exitWaitMs = 300;

/** `env` returns the environment of programs, to which a mark is added to find all their descendants. */
export function openPipedProcesses(options: { env: () => Environment; watchdog: Watchdog }): PipedProcesses {
  return new Piped(options.env, options.watchdog);
}

const ending = "The program is exiting; no program can be started.";

type Child = ChildProcessWithoutNullStreams & { pid: number };

class Piped implements PipedProcesses {
  readonly #env: () => Environment;
  readonly #watchdog: Watchdog;
  readonly #ending = new AbortController();
  readonly #running = new Map<number, Running>();

  constructor(env: () => Environment, watchdog: Watchdog) {
    this.#env = env;
    this.#watchdog = watchdog;
  }

  async start(command: PipedCommand): Promise<PipedProcess> {
    if (this.#ending.signal.aborted) throw new UserError(ending);
    const mark = this.#watchdog.newMark();
    const child = await spawnPiped(command, this.#environmentFor(command, mark));
    const running = new Running(child, mark, this.#ending.signal);
    this.#running.set(child.pid, running);
    this.#watchdog.guard(child.pid);
    void running.gone.then(() => {
      this.#running.delete(child.pid);
      this.#watchdog.forget(child.pid);
    });
    if (this.#ending.signal.aborted) {
      await running.end();
      throw new UserError(ending);
    }
    return running;
  }

  async endAll(): Promise<void> {
    this.#ending.abort();
    await Promise.all([...this.#running.values()].map((running) => running.end()));
  }

  killAll(): void {
    for (const group of this.#running.keys()) killGroup(group);
  }

  #environmentFor({ env }: PipedCommand, mark: string): Record<string, string | undefined> {
    const own = this.#env();
    return { ...own, ...env, [PROCESS_MARK]: `${own[PROCESS_MARK] ?? ""}${mark}` };
  }
}

class Running implements PipedProcess {
  readonly input: Writable;
  readonly output: Readable;
  readonly errors: Readable;
  readonly exited: Promise<PipedExit>;
  /** Resolves when its process tree has ended. Never rejects. */
  readonly gone: Promise<void>;
  readonly #tree: { group: number; mark: string };
  readonly #urgent: AbortSignal;
  #ended: Promise<void> | undefined;

  constructor(child: Child, mark: string, urgent: AbortSignal) {
    this.input = child.stdin;
    this.output = child.stdout;
    this.errors = child.stderr;
    this.#tree = { group: child.pid, mark };
    this.#urgent = urgent;
    this.exited = new Promise((resolve) => {
      child.once("exit", (code, signalName) => resolve({ code, signalName }));
    });
    // Its child processes must not outlive it.
    this.gone = this.exited.then(() => this.end());
  }

  end(): Promise<void> {
    this.#ended ??= this.#end();
    return this.#ended;
  }

  async #end(): Promise<void> {
    this.input.end();
    await orWhenAborted(orAfter(this.exited, exitWaitMs, undefined), this.#urgent, undefined);
    await endTree(this.#tree, this.#urgent);
    for (const pipe of [this.input, this.output, this.errors]) pipe.destroy();
  }
}

async function spawnPiped(command: PipedCommand, env: NodeJS.ProcessEnv): Promise<Child> {
  try {
    const found = await (isWindows ? spawnOnWindows(command, env) : spawnOnPosix(command, env));
    const { env: added, ...started } = await confineCommand(found, command);
    const child = spawnChild(started, command.cwd, { ...env, ...added });
    // A broken pipe must not crash this program; the end is reported by `exited`.
    for (const pipe of [child.stdin, child.stdout, child.stderr]) pipe.on("error", () => {});
    for (const output of [child.stdout, child.stderr]) endWriting(output);
    if (hasPid(child)) return child;
    throw (await once(child, "error"))[0];
  } catch (error) {
    throw new UserError(describeStartError(error, command), { cause: error });
  }
}

const isWindows = process.platform === "win32";

async function spawnOnWindows(
  { command, args, cwd, verbatim = false }: PipedCommand,
  env: Environment,
): Promise<SpawnedCommand> {
  if (verbatim) return { command, args, verbatim };
  const { resolveWindowsCommand } = await import("./windows-command.ts");
  const isFile = (path: string) => statOrUndefined(path)?.isFile() ?? false;
  return resolveWindowsCommand(command, args, { env, cwd, isFile }) ?? failToFind(command);
}

async function spawnOnPosix({ command, args }: PipedCommand, env: Environment): Promise<SpawnedCommand> {
  const found = command.includes("/") ? command : await findProgram(command, env);
  return { command: found ?? failToFind(command), args, verbatim: false };
}

function failToFind(command: string): never {
  throw Object.assign(new Error(`${command} not found on the PATH`), { code: "ENOENT" });
}

/** Returns the command line in the sandbox, if the program runs in one. */
async function confineCommand(
  found: SpawnedCommand,
  { confine }: PipedCommand,
): Promise<SpawnedCommand & { env: Environment }> {
  if (confine === undefined) return { ...found, env: {} };
  const { argv, env } = await confine([found.command, ...found.args]);
  const [command = "", ...args] = argv;
  return { command, args, verbatim: false, env };
}

function spawnChild({ command, args, verbatim }: SpawnedCommand, cwd: string, env: NodeJS.ProcessEnv) {
  return childProcess().spawn(command, [...args], {
    cwd,
    env,
    stdio: "pipe",
    detached: !isWindows,
    windowsHide: true,
    windowsVerbatimArguments: verbatim,
  });
}

function hasPid(child: ChildProcessWithoutNullStreams): child is Child {
  return child.pid !== undefined;
}

/** The error code is the same for a missing folder and a missing program. */
function describeStartError(error: unknown, { command, cwd }: PipedCommand): string {
  if (error instanceof UserError) return error.message;
  if (!isFolder(cwd)) return `its working directory ${cwd} is not a folder`;
  if (codeOf(error) === "ENOENT") return `program not found: "${command}"; install it or use its full path`;
  if (codeOf(error) === "EACCES") return `"${command}" is not executable`;
  // The system's error would quote the value, which may be a key.
  if (codeOf(error) === "ERR_INVALID_ARG_VALUE")
    return `"${command}" could not be started: its command line or environment contains a NUL character`;
  return `"${command}" could not be started: ${messageOf(error)}`;
}
