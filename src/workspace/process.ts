import { spawn, type ChildProcessByStdio } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once, setMaxListeners } from "node:events";
import { constants } from "node:fs";
import { access, stat } from "node:fs/promises";
import { basename, delimiter, isAbsolute, join, resolve } from "node:path";
import type { Readable, Writable } from "node:stream";
import { deferred, orAfter } from "../base/async.ts";
import { codeOf, messageOf, UserError } from "../base/errors.ts";
import { Secrets } from "../base/secrets.ts";
import { ProcessOutput } from "./process-output.ts";
import { endTree, hasRunningMember, killGroup, PROCESS_MARK, type ProcessTree } from "./process-tree.ts";

/** Shell commands, each in a process group of its own with stdin closed. */
export interface Processes {
  run(command: ShellCommand): Promise<ProcessOutcome>;
  /** A program without a shell that is talked to over its stdin and stdout. Rejects with a sentence where it cannot start. */
  start(program: Program): Promise<RunningProgram>;
  /** Ends every process still running, TERM then KILL. For the program's own end. */
  endAll(): Promise<void>;
  /** The same at once and without a word to them, for a program that cannot wait any longer. */
  killAll(): void;
}

export interface ShellCommand {
  command: string;
  cwd: string;
  timeoutMs: number;
  signal: AbortSignal;
  /** Output as it comes, stdout and stderr in order of arrival, as valid text. Awaited: that is the back-pressure. */
  onOutput(text: string): Promise<void>;
}

export interface Program {
  /** The program and its arguments; a name without a slash is looked for on the PATH. */
  command: readonly string[];
  cwd: string;
  /** Added to what commands are given. */
  env?: Readonly<Record<string, string>> | undefined;
}

export interface RunningProgram {
  readonly stdin: Writable;
  readonly stdout: Readable;
  readonly stderr: Readable;
  /** In words how it ended; never rejects. */
  readonly exited: Promise<string>;
  /** Ends it with all that it started, TERM then KILL. */
  end(): Promise<void>;
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

/** How long a slow reader may take over the last output of what was ended. */
const LAST_OUTPUT_MS = 100;

/**
 * `env` is given to the commands as it is, with a mark added by which all their descendants are found again.
 * Commands run in `bash` where it is on the PATH, else in `sh`; on Windows in `bash` or `cmd`.
 */
export function openProcesses(options: {
  env: Readonly<Record<string, string | undefined>>;
  /** Neither given to the commands, whatever variable holds one, nor let through in what they print. */
  secrets?: Secrets;
}): Processes {
  return new ShellProcesses(options.env, options.secrets ?? new Secrets());
}

type Exit = { code: number | null; signal: string | null };
type Started = { child: Shell; group: number };
type Stop = "timed-out" | "cancelled";

class ShellProcesses implements Processes {
  readonly #env: Readonly<Record<string, string | undefined>>;
  readonly #secrets: Secrets;
  readonly #mark = `${randomUUID()}/`;
  readonly #ending = new AbortController();
  readonly #running = new Set<Promise<ProcessOutcome>>();
  /** Groups whose command has not ended. */
  readonly #groups = new Set<number>();
  /** Groups that live on in the background. On Linux the mark finds them, and those that left their group too. */
  readonly #background = new Set<number>();
  #shell: Promise<string> | undefined;
  #count = 0;

  constructor(env: Readonly<Record<string, string | undefined>>, secrets: Secrets) {
    this.#env = env;
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

  async endAll(): Promise<void> {
    this.#ending.abort();
    await Promise.allSettled(this.#running);
    const groups = process.platform === "linux" ? [undefined] : [...this.#background];
    await Promise.all(groups.map((group) => endTree({ group, mark: this.#mark }, this.#ending.signal)));
    this.#background.clear();
  }

  killAll(): void {
    for (const group of [...this.#groups, ...this.#background]) killGroup(group);
  }

  async start({ command, cwd, env = {} }: Program): Promise<RunningProgram> {
    if (this.#ending.signal.aborted) throw new UserError("The program is ending; nothing starts any more.");
    const [name = "", ...args] = command;
    const path = name.includes("/") ? resolve(cwd, name) : await findProgram(name, this.#env);
    if (path === undefined) throw new UserError(`${name} was not found. Install it, or give its path.`);
    const mark = `${this.#mark}${++this.#count}/`;
    const marked = { ...this.#withoutSecrets(), ...env, [PROCESS_MARK]: this.#marked(mark) };
    const child = spawn(path, args, {
      cwd,
      env: marked,
      stdio: "pipe",
      detached: !isWindows,
      windowsHide: true,
    });
    const group = child.pid;
    if (group === undefined) {
      const why = messageOf((await once(child, "error"))[0]);
      throw new UserError(`${name} could not be started: ${why}`);
    }
    this.#background.add(group);
    const exited = once(child, "exit").then(([code, signal]) => {
      this.#background.delete(group);
      return signal === null ? `exit code ${code}` : `signal ${signal}`;
    });
    // Its end is seen by `exited`; what is written to it after that has no reader.
    child.stdin.on("error", codeOf);
    const end = () => endTree({ group, mark }, this.#ending.signal);
    return { stdin: child.stdin, stdout: child.stdout, stderr: child.stderr, exited, end };
  }

  #marked(mark: string): string {
    return `${this.#env[PROCESS_MARK] ?? ""}${mark}`;
  }

  async #runRedacted(command: ShellCommand): Promise<ProcessOutcome> {
    const redacted = this.#secrets.redactStream();
    const show = async (text: string) => {
      if (text !== "") await command.onOutput(text);
    };
    const ended = await this.#start({ ...command, onOutput: (text) => show(redacted.push(text)) });
    await show(redacted.end());
    return ended;
  }

  #withoutSecrets(): Record<string, string | undefined> {
    const entries = Object.entries(this.#env);
    return Object.fromEntries(entries.filter(([, value]) => !this.#secrets.isIn(value ?? "")));
  }

  async #start(command: ShellCommand): Promise<ProcessOutcome> {
    if (this.#ending.signal.aborted)
      return failedToStart("The program is ending; no command starts any more.");
    this.#shell ??= findShell(this.#env);
    const shell = await this.#shell;
    if (command.signal.aborted) return outcome("cancelled");
    const mark = `${this.#mark}${++this.#count}/`;
    const env = { ...this.#withoutSecrets(), [PROCESS_MARK]: this.#marked(mark) };
    const started = await startShell(shell, command, env);
    if ("error" in started) return failedToStart(await whyNotStarted(started.error, command, shell));
    return this.#watch(started, command, mark);
  }

  async #watch({ child, group }: Started, command: ShellCommand, mark: string): Promise<ProcessOutcome> {
    this.#groups.add(group);
    const exited = exitOf(child);
    const tree: ProcessTree = { group, mark };
    const output = new ProcessOutput(child.stdout, (text) => command.onOutput(text));
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
      stop.forget();
      if (stop.happened) output.abandon();
      child.unref();
    }
  }

  async #settle({ code, signal }: Exit, pipeHeld: boolean, group: number): Promise<ProcessOutcome> {
    const grouped = await hasRunningMember(group);
    if (grouped) this.#background.add(group);
    return { end: "exited", exitCode: code, signalName: signal, background: grouped || pipeHeld };
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

/** Resolves when the time is up or a signal aborts, unless it is told to forget about it. */
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
  if (!(await isFolder(cwd))) return `The working directory ${cwd} is not a folder. Give one that exists.`;
  return `The shell ${shell} could not be started in ${cwd}: ${messageOf(error)}`;
}

async function isFolder(path: string): Promise<boolean> {
  try {
    return (await stat(path)).isDirectory();
  } catch {
    return false;
  }
}

type Environment = Readonly<Record<string, string | undefined>>;

async function findShell(env: Environment): Promise<string> {
  const bash = await findProgram("bash", env);
  return bash ?? (isWindows ? (env["ComSpec"] ?? "cmd.exe") : "/bin/sh");
}

/** Only absolute folders of the PATH count: others would lead into whatever folder the program runs in. */
async function findProgram(name: string, env: Environment): Promise<string | undefined> {
  const folders = (env["PATH"] ?? env["Path"] ?? "/usr/bin:/bin").split(delimiter).filter(isAbsolute);
  for (const folder of folders) {
    const path = join(folder, isWindows ? `${name}.exe` : name);
    if (await isExecutable(path)) return path;
  }
  return undefined;
}

async function isExecutable(path: string): Promise<boolean> {
  try {
    await access(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
