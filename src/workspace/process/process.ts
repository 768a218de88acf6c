import type { ChildProcessByStdio } from "node:child_process";
import { once, setMaxListeners } from "node:events";
import { basename } from "node:path";
import type { Readable, Writable } from "node:stream";
import { deferred, orAfter } from "../../base/async.ts";
import { codeOf, messageOf } from "../../base/errors.ts";
import { isFolder } from "../../base/files/file-stat.ts";
import type { TextOrBytes } from "../../base/secrets/text-or-bytes.ts";
import { Secrets } from "../../base/secrets/secrets.ts";
import { childProcess } from "./child-process.ts";
import type { Environment } from "./find-program.ts";
import { findShell } from "./find-shell.ts";
import { endWriting, ProcessOutput } from "./process-output.ts";
import { endTree, killGroup, PROCESS_MARK, type ProcessTree, findRunningGroups } from "./process-tree.ts";
import type { Watchdog } from "./watchdog.ts";

/** Runs shell commands, each in its own process group. */
export interface Processes {
  run(command: ShellCommand): Promise<ProcessOutcome>;
  /** Returns the path of the shell that runs the commands. */
  findShell(): Promise<string>;
  /** Prepares the first command, such as finding the shell. */
  warmUp(): Promise<void>;
  /** Ends all running processes at program exit: TERM, then KILL. */
  endAll(): Promise<void>;
  /** Kills all processes immediately, without waiting. */
  killAll(): void;
}

export interface ShellCommand {
  command: string;
  cwd: string;
  /** No limit if undefined. */
  timeoutMs?: number | undefined;
  signal: AbortSignal;
  /** Variables to add to its environment. */
  env?: Readonly<Record<string, string>> | undefined;
  /** How a sandbox runs it; without it the shell runs it directly. */
  confine?: Confine | undefined;
  /** Receives the command's open stdin; without it, stdin is closed. */
  onStart?: (input: Writable) => void;
  /** Receives stdout and stderr in order of arrival, as valid text. Awaited for backpressure. */
  onOutput(chunk: TextOrBytes): Promise<void>;
}

/**
 * Returns the command line that runs the shell command confined, and variables to add to its environment. `argv` is the
 * command line without a sandbox.
 */
export type Confine = (argv: readonly string[]) => Promise<ConfinedLine>;

export interface ConfinedLine {
  readonly argv: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** A process of the sandbox holds the output open exactly as long as any process in the sandbox runs. */
  readonly holdsOutput: boolean;
}

export interface ProcessOutcome {
  end: "exited" | "timed-out" | "cancelled" | "failed-to-start";
  /** Null if a signal ended the process or it never started. */
  exitCode: number | null;
  signalName: string | null;
  /** Why it could not start. */
  error?: string;
  /** Whether background processes of the command still run. */
  background: boolean;
}

/** Time for a slow reader to receive the last output of an ended command. */
const LAST_OUTPUT_MS = 100;

/**
 * `env` returns the environment of commands, to which a mark is added to find all their descendants.
 * Commands run in `bash` if it is on the PATH, else in `sh`; on Windows in `bash` or `cmd`.
 */
export function openProcesses(options: {
  env: () => Environment;
  watchdog: Watchdog;
  secrets?: Secrets;
}): Processes {
  return new ShellProcesses(options.env, options.watchdog, options.secrets ?? new Secrets());
}

type Exit = { code: number | null; signal: string | null };
type Started = { child: Shell; group: number };
type Running = Started & { holdsOutput: boolean };
type Stop = "timed-out" | "cancelled";

class ShellProcesses implements Processes {
  readonly #env: () => Environment;
  readonly #watchdog: Watchdog;
  readonly #secrets: Secrets;
  /** Mark in the environment of all commands; undefined before the first one. */
  #mark: string | undefined;
  readonly #ending = new AbortController();
  readonly #running = new Set<Promise<ProcessOutcome>>();
  /** Groups whose command still runs. */
  readonly #groups = new Set<number>();
  /** Groups of background processes, to find members that emptied their environment. */
  readonly #background = new Set<number>();
  #shell: Promise<string> | undefined;
  #count = 0;

  constructor(env: () => Environment, watchdog: Watchdog, secrets: Secrets) {
    this.#env = env;
    this.#watchdog = watchdog;
    this.#secrets = secrets;
    // Each running command adds a listener.
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

  findShell(): Promise<string> {
    this.#shell ??= findShell(this.#env());
    return this.#shell;
  }

  async warmUp(): Promise<void> {
    await this.findShell();
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
    const show = async (chunk: TextOrBytes) => {
      if (chunk.length > 0) await command.onOutput(chunk);
    };
    const ended = await this.#start({ ...command, onOutput: (chunk) => show(redacted.push(chunk)) });
    await show(redacted.end());
    return ended;
  }

  async #start(command: ShellCommand): Promise<ProcessOutcome> {
    if (this.#ending.signal.aborted)
      return createStartFailure("The program is exiting; no command can be started.");
    const shell = await this.findShell();
    if (command.signal.aborted) return createOutcome("cancelled");
    if (isCmd(shell) && command.command.trim().includes("\n"))
      return createStartFailure(
        "cmd.exe runs only one line. Join the lines with && or &, or run a .cmd file.",
      );
    this.#mark ??= this.#watchdog.newMark();
    const mark = `${this.#mark}${++this.#count}/`;
    const marks = `${this.#env()[PROCESS_MARK] ?? ""}${mark}`;
    const argv = [shell, "-c", command.command, basename(shell)];
    const confined = await command.confine?.(argv);
    if (command.signal.aborted) return createOutcome("cancelled");
    const env = { ...this.#env(), ...command.env, ...confined?.env, [PROCESS_MARK]: marks };
    const started = await startShell({ shell, argv: confined?.argv ?? argv }, command, env);
    if ("error" in started)
      return createStartFailure(await describeStartError(started.error, command, shell));
    return this.#watch({ ...started, holdsOutput: confined?.holdsOutput === true }, command, mark);
  }

  async #watch(
    { child, group, holdsOutput }: Running,
    command: ShellCommand,
    mark: string,
  ): Promise<ProcessOutcome> {
    this.#groups.add(group);
    this.#watchdog.guard(group);
    const exited = waitForExit(child);
    const tree: ProcessTree = { group, mark };
    const output = new ProcessOutput(child.stdout, (chunk) => command.onOutput(chunk));
    const stop = createStop(command, this.#ending.signal);
    const finished = Promise.all([exited, exited.then(() => output.drain())]);
    try {
      const first = await Promise.race([finished, stop.promise, rejectWith(output.done)]);
      if (typeof first !== "string") {
        const [exit, { held }] = first;
        // The sandbox's own process may take a moment to end after its last one.
        return holdsOutput && !held
          ? { ...toOutcome(exit), background: false }
          : await this.#settle(exit, held, group);
      }
      await endTree(tree, this.#ending.signal);
      await orAfter(Promise.allSettled([finished]), LAST_OUTPUT_MS, undefined);
      const exit = await orAfter(exited, 0, undefined);
      return { ...createOutcome(first), signalName: exit?.signal ?? null };
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

  async #settle(exit: Exit, pipeHeld: boolean, group: number): Promise<ProcessOutcome> {
    const running = await findRunningGroups([group, ...this.#background]);
    // The id of an ended group may be reused.
    for (const ended of this.#background) if (!running.includes(ended)) this.#forgetBackground(ended);
    const grouped = running.includes(group);
    if (grouped) {
      this.#background.add(group);
      this.#watchdog.guardBackground(group);
    }
    return { ...toOutcome(exit), background: grouped || pipeHeld };
  }

  #forgetBackground(group: number): void {
    this.#background.delete(group);
    this.#watchdog.forget(group);
  }
}

type Shell = ChildProcessByStdio<Writable | null, Readable, null>;

const isWindows = process.platform === "win32";
/** One pipe for both outputs preserves their order. */
const ONE_PIPE = 'exec "$@" 2>&1';
/**
 * Variable that contains the command. A first `cmd` joins both outputs and starts a second one, which runs the command.
 * The first one inserts the variable after parsing its own line: in `(command) 2>&1`, a parenthesis in the command would
 * end the group.
 */
const CMD_LINE = "FAIRLEAD_COMMAND";

const isCmd = (shell: string): boolean => shell.endsWith("cmd.exe");

/** The shell, and the command line that runs the command in it. */
interface ShellLine {
  readonly shell: string;
  readonly argv: readonly string[];
}

function spawnShell(
  { shell, argv }: ShellLine,
  { command, cwd, onStart }: ShellCommand,
  env: NodeJS.ProcessEnv,
): Shell {
  const [program, args] = isCmd(shell)
    ? [shell, ["/d", "/v:on", "/s", "/c", `""${shell}" 2>&1 /d /s /c !${CMD_LINE}!"`]]
    : [isWindows ? shell : "/bin/sh", ["-c", ONE_PIPE, basename(shell), ...argv]];
  const options = {
    cwd,
    env: isCmd(shell) ? { ...env, [CMD_LINE]: `"${command}"` } : env,
    // Own process group; on Windows this would open a window.
    detached: !isWindows,
    windowsHide: true,
    windowsVerbatimArguments: isCmd(shell),
  };
  const { spawn } = childProcess();
  return onStart === undefined
    ? spawn(program, args, { ...options, stdio: ["ignore", "pipe", "ignore"] })
    : spawn(program, args, { ...options, stdio: ["pipe", "pipe", "ignore"] });
}

/** Node throws some spawn errors and emits others. */
async function startShell(
  line: ShellLine,
  command: ShellCommand,
  env: NodeJS.ProcessEnv,
): Promise<Started | { error: unknown }> {
  try {
    const child = spawnShell(line, command, env);
    endWriting(child.stdout);
    // A command may close its input at any time.
    child.stdin?.on("error", () => {});
    if (child.pid !== undefined) {
      if (child.stdin !== null) command.onStart?.(child.stdin);
      return { child, group: child.pid };
    }
    return { error: (await once(child, "error"))[0] };
  } catch (error) {
    return { error };
  }
}

function waitForExit(child: Shell): Promise<Exit> {
  return new Promise((resolve) => {
    child.once("exit", (code, signal) => resolve({ code, signal }));
  });
}

function createStop(command: ShellCommand, ending: AbortSignal) {
  const end = deferred<Stop>();
  const stop = { promise: end.promise, happened: false, forget };
  const happen = (why: Stop) => {
    stop.happened = true;
    end.resolve(why);
  };
  const cancel = () => happen("cancelled");
  const { timeoutMs } = command;
  const timer = timeoutMs === undefined ? undefined : setTimeout(() => happen("timed-out"), timeoutMs);
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
function rejectWith(promise: Promise<void>): Promise<never> {
  return new Promise((_, reject) => {
    promise.catch(reject);
  });
}

function createOutcome(end: ProcessOutcome["end"]): ProcessOutcome {
  return { end, exitCode: null, signalName: null, background: false };
}

function toOutcome({ code, signal }: Exit): Omit<ProcessOutcome, "background"> {
  return { end: "exited", exitCode: code, signalName: signal };
}

function createStartFailure(error: string): ProcessOutcome {
  return { ...createOutcome("failed-to-start"), error };
}

async function describeStartError(
  error: unknown,
  { command, cwd }: ShellCommand,
  shell: string,
): Promise<string> {
  if (!isFolder(cwd)) return `The working directory ${cwd} is not a folder. Give one that exists.`;
  // On Windows the error for more than 32,767 characters says that a name is too long.
  if (codeOf(error) === "E2BIG" || codeOf(error) === "ENAMETOOLONG") {
    return `The command is too long for this system (${command.length} characters). Write it to a file and run that.`;
  }
  return `The shell ${shell} could not be started in ${cwd}: ${messageOf(error)}`;
}
