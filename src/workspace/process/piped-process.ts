import { spawn, type ChildProcessWithoutNullStreams } from "node:child_process";
import { once } from "node:events";
import type { Readable, Writable } from "node:stream";
import { orAfter, orWhenAborted } from "../../base/async.ts";
import { codeOf, messageOf, UserError } from "../../base/errors.ts";
import { isFolder, statOrUndefined } from "../../base/files/file-stat.ts";
import { type Environment, findProgram } from "./find-program.ts";
import { endWriting } from "./process-output.ts";
import { endTree, killGroup, PROCESS_MARK } from "./process-tree.ts";
import type { Watchdog } from "./watchdog.ts";
import { type SpawnedCommand, windowsCommand } from "./windows-command.ts";

/** Programs with open stdin and stdout, each in its own process group. */
export interface PipedProcesses {
  /** Throws {@link UserError} where it cannot be started; its message goes on from "…: ". */
  start(command: PipedCommand): Promise<PipedProcess>;
  /** Ends all that still run, TERM then KILL. For the program's own end. */
  endAll(): Promise<void>;
  /** Kills all immediately. */
  killAll(): void;
}

export interface PipedCommand {
  readonly command: string;
  readonly args: readonly string[];
  readonly cwd: string;
  /** Laid over what every command gets; given on purpose, so nothing of it is withheld. */
  readonly env: Environment;
}

export interface PipedProcess {
  readonly input: Writable;
  readonly output: Readable;
  readonly errors: Readable;
  /** Resolves when the process has ended. */
  readonly exited: Promise<PipedExit>;
  /** Closes its input and gives it a moment to go; then ends it with everything that it started. */
  end(): Promise<void>;
}

export interface PipedExit {
  readonly code: number | null;
  readonly signalName: string | null;
}

/** A program that is done when its input ends goes within this time; one that cleans up gets TERM then. */
const goodbyeMs = 300;

/** `env` says what the programs are given; a mark is added by which all their descendants are found. */
export function openPipedProcesses(options: { env: () => Environment; watchdog: Watchdog }): PipedProcesses {
  return new Piped(options.env, options.watchdog);
}

const ending = "The program is ending; nothing starts any more.";

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
  /** Resolves when nothing of its tree is left. Never rejects. */
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
    // What it started must not outlive it.
    this.gone = this.exited.then(() => this.end());
  }

  end(): Promise<void> {
    this.#ended ??= this.#end();
    return this.#ended;
  }

  async #end(): Promise<void> {
    this.input.end();
    await orWhenAborted(orAfter(this.exited, goodbyeMs, undefined), this.#urgent, undefined);
    await endTree(this.#tree, this.#urgent);
    for (const pipe of [this.input, this.output, this.errors]) pipe.destroy();
  }
}

async function spawnPiped(command: PipedCommand, env: NodeJS.ProcessEnv): Promise<Child> {
  try {
    const started = isWindows ? onWindows(command, env) : await onPosix(command, env);
    const child = spawnChild(started, command.cwd, env);
    // Its end is seen by `exited`: a pipe that breaks with it must not end us too.
    for (const pipe of [child.stdin, child.stdout, child.stderr]) pipe.on("error", () => {});
    for (const output of [child.stdout, child.stderr]) endWriting(output);
    if (hasPid(child)) return child;
    throw (await once(child, "error"))[0];
  } catch (error) {
    throw new UserError(whyNotStarted(error, command), { cause: error });
  }
}

const isWindows = process.platform === "win32";

function onWindows({ command, args, cwd }: PipedCommand, env: Environment): SpawnedCommand {
  const isFile = (path: string) => statOrUndefined(path)?.isFile() ?? false;
  return windowsCommand(command, args, { env, cwd, isFile });
}

async function onPosix({ command, args }: PipedCommand, env: Environment): Promise<SpawnedCommand> {
  const found = command.includes("/") ? command : await findProgram(command, env);
  if (found === undefined)
    throw Object.assign(new Error(`${command} is not on the PATH`), { code: "ENOENT" });
  return { command: found, args, verbatim: false };
}

function spawnChild({ command, args, verbatim }: SpawnedCommand, cwd: string, env: NodeJS.ProcessEnv) {
  return spawn(command, [...args], {
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

/** A missing folder and a missing program give the same code. */
function whyNotStarted(error: unknown, { command, cwd }: PipedCommand): string {
  if (!isFolder(cwd)) return `its working directory ${cwd} is not a folder`;
  if (codeOf(error) === "ENOENT")
    return `there is no program "${command}"; install it or write its whole path`;
  if (codeOf(error) === "EACCES") return `"${command}" may not be executed`;
  // The system's error would quote the value, which may be a key.
  if (codeOf(error) === "ERR_INVALID_ARG_VALUE")
    return `"${command}" could not be started: its command line or environment contains a NUL character`;
  return `"${command}" could not be started: ${messageOf(error)}`;
}
