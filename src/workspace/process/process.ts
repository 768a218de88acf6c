import { spawn, type ChildProcessByStdio } from "node:child_process";
import { once, setMaxListeners } from "node:events";
import { basename } from "node:path";
import type { Readable } from "node:stream";
import { deferred, orAfter } from "../../base/async.ts";
import { codeOf, messageOf } from "../../base/errors.ts";
import { isFolder } from "../../base/files/file-stat.ts";
import type { TextOrBytes } from "../../base/secrets/text-or-bytes.ts";
import { Secrets } from "../../base/secrets/secrets.ts";
import { type Environment, findProgram } from "./find-program.ts";
import { endWriting, ProcessOutput } from "./process-output.ts";
import { endTree, killGroup, PROCESS_MARK, type ProcessTree, runningGroups } from "./process-tree.ts";
import type { Watchdog } from "./watchdog.ts";

/** Runs shell commands, each in its own process group with stdin closed. */
export interface Processes {
  run(command: ShellCommand): Promise<ProcessOutcome>;
  /** Finds out what a first command needs to know. */
  warmUp(): Promise<void>;
  /** Ends every process still running, TERM then KILL. For the program's own end. */
  endAll(): Promise<void>;
  /** Kills every process immediately, for a program that cannot wait. */
  killAll(): void;
}

export interface ShellCommand {
  command: string;
  cwd: string;
  timeoutMs: number;
  signal: AbortSignal;
  /** Receives output, stdout and stderr in order of arrival, as valid text. Awaited for backpressure. */
  onOutput(piece: TextOrBytes): Promise<void>;
}

export interface ProcessOutcome {
  end: "exited" | "timed-out" | "cancelled" | "failed-to-start";
  /** The exit code, null when a signal ended it or it never started. */
  exitCode: number | null;
  signalName: string | null;
  /** Why it could not start. */
  error?: string;
  /** Whether background processes of the command still run. */
  background: boolean;
}

/** How long a slow reader may take over the last output of what was ended. */
const LAST_OUTPUT_MS = 100;

/**
 * `env` says what the commands are given, to which a mark is added by which all their descendants are found again.
 * Commands run in `bash` where it is on the PATH, else in `sh`; on Windows in `bash` or `cmd`.
 */
export function openProcesses(options: {
  env: () => Environment;
  watchdog: Watchdog;
  /** Values redacted from the output. */
  secrets?: Secrets;
}): Processes {
  return new ShellProcesses(options.env, options.watchdog, options.secrets ?? new Secrets());
}

type Exit = { code: number | null; signal: string | null };
type Started = { child: Shell; group: number };
type Stop = "timed-out" | "cancelled";

class ShellProcesses implements Processes {
  readonly #env: () => Environment;
  readonly #watchdog: Watchdog;
  readonly #secrets: Secrets;
  /** In the environment of all commands; none before the first. */
  #mark: string | undefined;
  readonly #ending = new AbortController();
  readonly #running = new Set<Promise<ProcessOutcome>>();
  /** Groups whose command has not ended. */
  readonly #groups = new Set<number>();
  /** Groups that live on in the background, for members that have emptied their environment. */
  readonly #background = new Set<number>();
  #shell: Promise<string> | undefined;
  #count = 0;

  constructor(env: () => Environment, watchdog: Watchdog, secrets: Secrets) {
    this.#env = env;
    this.#watchdog = watchdog;
    this.#secrets = secrets;
    // Each running command listens.
    setMaxListeners(0, this.#ending.signal);
  }

  async run(command: ShellCommand): Promise<ProcessOutcome> {
    const run = this.#runRedacted(command);
    this.#running.add(run);
    try {
      return await run;
    } finally {
      this.#running.delete(run);
    }
  }

  async warmUp(): Promise<void> {
    await this.#findShell();
  }

  async endAll(): Promise<void> {
    this.#ending.abort();
    await Promise.allSettled(this.#running);
    const mark = this.#mark;
    if (mark === undefined) return;
    await endTree({ background: [...this.#background], mark }, this.#ending.signal);
    this.#background.clear();
  }

  killAll(): void {
    for (const group of [...this.#groups, ...this.#background]) killGroup(group);
  }

  async #runRedacted(command: ShellCommand): Promise<ProcessOutcome> {
    const redacted = this.#secrets.redactStream();
    const show = async (piece: TextOrBytes) => {
      if (piece.length > 0) await command.onOutput(piece);
    };
    const ended = await this.#start({ ...command, onOutput: (piece) => show(redacted.push(piece)) });
    await show(redacted.end());
    return ended;
  }

  async #start(command: ShellCommand): Promise<ProcessOutcome> {
    if (this.#ending.signal.aborted)
      return failedToStart("The program is ending; no command starts any more.");
    const shell = await this.#findShell();
    if (command.signal.aborted) return outcome("cancelled");
    this.#mark ??= this.#watchdog.newMark();
    const mark = `${this.#mark}${++this.#count}/`;
    const marks = `${this.#env()[PROCESS_MARK] ?? ""}${mark}`;
    const started = await startShell(shell, command, { ...this.#env(), [PROCESS_MARK]: marks });
    if ("error" in started) return failedToStart(await whyNotStarted(started.error, command, shell));
    return this.#watch(started, command, mark);
  }

  #findShell(): Promise<string> {
    this.#shell ??= findShell(this.#env());
    return this.#shell;
  }

  async #watch({ child, group }: Started, command: ShellCommand, mark: string): Promise<ProcessOutcome> {
    this.#groups.add(group);
    this.#watchdog.guard(group);
    const exited = exitOf(child);
    const tree: ProcessTree = { group, mark };
    const output = new ProcessOutput(child.stdout, (piece) => command.onOutput(piece));
    const stop = stopOf(command, this.#ending.signal);
    const finished = Promise.all([exited, exited.then(() => output.drain())]);
    try {
      const first = await Promise.race([finished, stop.promise, rejectionOf(output.done)]);
      if (typeof first !== "string") return await this.#settle(first[0], first[1].held, group);
      await endTree(tree, this.#ending.signal);
      await orAfter(Promise.allSettled([finished]), LAST_OUTPUT_MS, undefined);
      const exit = await orAfter(exited, 0, undefined);
      return { ...outcome(first), signalName: exit?.signal ?? null };
    } catch (error) {
      await endTree(tree, this.#ending.signal);
      throw error;
    } finally {
      this.#groups.delete(group);
      if (!this.#background.has(group)) this.#watchdog.forget(group);
      stop.forget();
      if (stop.happened) output.abandon();
      child.unref();
    }
  }

  async #settle({ code, signal }: Exit, pipeHeld: boolean, group: number): Promise<ProcessOutcome> {
    const running = await runningGroups([group, ...this.#background]);
    // The id of an ended group may be reused.
    for (const ended of this.#background) if (!running.includes(ended)) this.#forgetBackground(ended);
    const grouped = running.includes(group);
    if (grouped) {
      this.#background.add(group);
      this.#watchdog.guardBackground(group);
    }
    return { end: "exited", exitCode: code, signalName: signal, background: grouped || pipeHeld };
  }

  #forgetBackground(group: number): void {
    this.#background.delete(group);
    this.#watchdog.forget(group);
  }
}

type Shell = ChildProcessByStdio<null, Readable, null>;

const isWindows = process.platform === "win32";
/** Both outputs share one pipe, as on a terminal: only so is their order known. */
const ONE_PIPE = 'exec "$0" -c "$1" "$2" 2>&1';

function spawnShell(shell: string, { command, cwd }: ShellCommand, env: NodeJS.ProcessEnv): Shell {
  const [program, args] = shell.endsWith("cmd.exe")
    ? [shell, ["/d", "/s", "/c", `"(${command}) 2>&1"`]]
    : [isWindows ? shell : "/bin/sh", ["-c", ONE_PIPE, shell, command, basename(shell)]];
  return spawn(program, args, {
    cwd,
    env,
    stdio: ["ignore", "pipe", "ignore"],
    // A group of its own; on Windows this would open a window.
    detached: !isWindows,
    windowsHide: true,
    windowsVerbatimArguments: shell.endsWith("cmd.exe"),
  });
}

/** Node throws some of a spawn's errors and emits the others. */
async function startShell(
  shell: string,
  command: ShellCommand,
  env: NodeJS.ProcessEnv,
): Promise<Started | { error: unknown }> {
  try {
    const child = spawnShell(shell, command, env);
    endWriting(child.stdout);
    if (child.pid !== undefined) return { child, group: child.pid };
    return { error: (await once(child, "error"))[0] };
  } catch (error) {
    return { error };
  }
}

function exitOf(child: Shell): Promise<Exit> {
  return new Promise((resolve) => {
    child.once("exit", (code, signal) => resolve({ code, signal }));
  });
}

/** Resolves on timeout or abort, unless cancelled. */
function stopOf(command: ShellCommand, ending: AbortSignal) {
  const end = deferred<Stop>();
  const stop = { promise: end.promise, happened: false, forget };
  const happen = (why: Stop) => {
    stop.happened = true;
    end.resolve(why);
  };
  const cancel = () => happen("cancelled");
  const timer = setTimeout(() => happen("timed-out"), command.timeoutMs);
  const signals = [command.signal, ending];
  for (const signal of signals) signal.addEventListener("abort", cancel, { once: true });
  if (signals.some((signal) => signal.aborted)) cancel();
  return stop;

  function forget() {
    clearTimeout(timer);
    for (const signal of signals) signal.removeEventListener("abort", cancel);
  }
}

/** Never resolves; rejects when the promise does. */
function rejectionOf(promise: Promise<void>): Promise<never> {
  return new Promise((_, reject) => {
    promise.catch(reject);
  });
}

function outcome(end: ProcessOutcome["end"]): ProcessOutcome {
  return { end, exitCode: null, signalName: null, background: false };
}

function failedToStart(error: string): ProcessOutcome {
  return { ...outcome("failed-to-start"), error };
}

async function whyNotStarted(error: unknown, { command, cwd }: ShellCommand, shell: string): Promise<string> {
  if (codeOf(error) === "E2BIG") {
    return `The command is too long for this system (${command.length} characters). Write it to a file and run that.`;
  }
  if (!isFolder(cwd)) return `The working directory ${cwd} is not a folder. Give one that exists.`;
  return `The shell ${shell} could not be started in ${cwd}: ${messageOf(error)}`;
}

async function findShell(env: Environment): Promise<string> {
  const bash = await findProgram("bash", env);
  return bash ?? (isWindows ? (env["ComSpec"] ?? "cmd.exe") : "/bin/sh");
}
