import { spawn, type ChildProcess } from "node:child_process";
import type { ConfinedLine } from "./process.ts";
import { endWriting } from "./process-output.ts";
import { endTree, killGroup, PROCESS_MARK } from "./process-tree.ts";
import type { Watchdog } from "./watchdog.ts";

/** Program and environment, shared by all instances. */
export interface NodeProgramSource {
  /** See {@link createNodeLine}. */
  readonly argv: readonly string[];
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly watchdog: Watchdog;
}

export interface NodeProgramOptions {
  readonly cwd: string;
  /** The command line in the sandbox, if it runs in one. */
  readonly confined?: Pick<ConfinedLine, "argv" | "env"> | undefined;
  onMessage(message: unknown): void;
  /** Receives stdout and stderr. */
  onOutput(text: string): void;
  /** Called when it ended by itself or could not start. */
  onExit(reason: string): void;
}

/** A bundled, long-running Node program in its own process group, with a message channel. */
export class NodeProgram {
  readonly #child: ChildProcess;
  readonly #mark: string;
  readonly #watchdog: Watchdog;
  #isEnding = false;

  constructor({ argv, env, watchdog }: NodeProgramSource, options: NodeProgramOptions) {
    this.#watchdog = watchdog;
    this.#mark = watchdog.newMark();
    const { cwd, confined } = options;
    const [program = process.execPath, ...args] = confined?.argv ?? argv;
    this.#child = spawn(program, args, {
      cwd,
      env: { ...env, ...confined?.env, [PROCESS_MARK]: `${env[PROCESS_MARK] ?? ""}${this.#mark}` },
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
        .on("error", (error) => options.onOutput(`its output failed: ${error.message}`));
    }
  }

  /** Dropped if the program has ended; onExit reports that. */
  send(message: object): void {
    if (this.#child.connected) this.#child.send(message, () => {});
  }

  /** Ends it with all its child processes; "quickly" at program exit leaves little time to clean up. */
  async end(how: "gently" | "quickly"): Promise<void> {
    this.#isEnding = true;
    const group = this.#child.pid;
    await endTree({ group, mark: this.#mark }, how === "quickly" ? AbortSignal.abort() : undefined);
    if (group !== undefined) this.#watchdog.forget(group);
  }

  /** Kills it immediately, without waiting. */
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

/** Returns the command line that runs a file with this program's Node. */
export function createNodeLine(path: string): readonly string[] {
  return [process.execPath, "--no-warnings", ...getTypescriptFlags(), path];
}

/** Node 22.18 and later run TypeScript without flags. */
function getTypescriptFlags(): string[] {
  return process.features.typescript ? [] : ["--experimental-strip-types"];
}
