import { spawn, type ChildProcess } from "node:child_process";
import { endWriting } from "./process-output.ts";
import { endTree, killGroup, PROCESS_MARK } from "./process-tree.ts";
import type { Watchdog } from "./watchdog.ts";

/** What is run, and with what; the same for all that run it. */
export interface NodeProgramSource {
  /** The program's file. */
  readonly path: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly watchdog: Watchdog;
}

export interface NodeProgramOptions {
  readonly cwd: string;
  onMessage(message: unknown): void;
  /** What it prints on both outputs. */
  onOutput(text: string): void;
  /** It ended by itself, or could not start. */
  onExit(reason: string): void;
}

/** A program of ours that runs for long on the same Node, in a process group of its own, and talks in messages. */
export class NodeProgram {
  readonly #child: ChildProcess;
  readonly #mark: string;
  readonly #watchdog: Watchdog;
  #isEnding = false;

  constructor({ path, env, watchdog }: NodeProgramSource, options: NodeProgramOptions) {
    this.#watchdog = watchdog;
    this.#mark = watchdog.newMark();
    this.#child = spawn(process.execPath, ["--no-warnings", ...typescriptFlags(), path], {
      cwd: options.cwd,
      env: { ...env, [PROCESS_MARK]: `${env[PROCESS_MARK] ?? ""}${this.#mark}` },
      stdio: ["ignore", "pipe", "pipe", "ipc"],
      detached: process.platform !== "win32",
      windowsHide: true,
    });
    if (this.#child.pid !== undefined) watchdog.guard(this.#child.pid);
    this.#child.on("message", (message) => options.onMessage(message));
    this.#child.on("error", (error) => this.#ended(options, error.message));
    this.#child.on("exit", (code, signal) => this.#ended(options, signal ?? `code ${code}`));
    for (const output of [this.#child.stdout, this.#child.stderr]) {
      if (output === null) continue;
      endWriting(output);
      output
        .setEncoding("utf8")
        .on("data", (text: string) => options.onOutput(text))
        .on("error", (error) => options.onOutput(`its output broke: ${error.message}`));
    }
  }

  /** Lost where it has ended: then onExit says so. */
  send(message: object): void {
    if (this.#child.connected) this.#child.send(message, () => {});
  }

  /** Ends it with all that it started; quickly, for the end of our own program, without much of a chance to tidy up. */
  async end(how: "gently" | "quickly"): Promise<void> {
    this.#isEnding = true;
    const group = this.#child.pid;
    await endTree({ group, mark: this.#mark }, how === "quickly" ? AbortSignal.abort() : undefined);
    if (group !== undefined) this.#watchdog.forget(group);
  }

  /** At once, for a program that cannot wait. */
  kill(): void {
    this.#isEnding = true;
    if (this.#child.pid !== undefined) killGroup(this.#child.pid);
  }

  #ended(options: NodeProgramOptions, reason: string): void {
    if (this.#isEnding) return;
    this.#isEnding = true;
    options.onExit(reason);
  }
}

/** Node 22.18 and later read TypeScript by themselves. */
function typescriptFlags(): string[] {
  return process.features.typescript ? [] : ["--experimental-strip-types"];
}
