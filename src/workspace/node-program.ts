import { spawn, type ChildProcess } from "node:child_process";
import { randomUUID } from "node:crypto";
import { endTree, killGroup, PROCESS_MARK } from "./process-tree.ts";

export interface NodeProgramOptions {
  /** The program's file. */
  readonly path: string;
  readonly cwd: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  onMessage(message: unknown): void;
  /** What it prints on both outputs. */
  onOutput(text: string): void;
  /** It ended by itself, or could not start. */
  onExit(reason: string): void;
}

/** A program of ours that runs for long on the same Node, in a process group of its own, and talks in messages. */
export class NodeProgram {
  readonly #child: ChildProcess;
  readonly #mark = `${randomUUID()}/`;
  #isEnding = false;

  constructor(options: NodeProgramOptions) {
    const { path, cwd, env } = options;
    this.#child = spawn(process.execPath, ["--no-warnings", ...typescriptFlags(), path], {
      cwd,
      env: { ...env, [PROCESS_MARK]: `${env[PROCESS_MARK] ?? ""}${this.#mark}` },
      stdio: ["ignore", "pipe", "pipe", "ipc"],
      detached: process.platform !== "win32",
      windowsHide: true,
    });
    this.#child.on("message", (message) => options.onMessage(message));
    this.#child.on("error", (error) => this.#ended(options, error.message));
    this.#child.on("exit", (code, signal) => this.#ended(options, signal ?? `code ${code}`));
    for (const output of [this.#child.stdout, this.#child.stderr])
      output
        ?.setEncoding("utf8")
        .on("data", (text: string) => options.onOutput(text))
        .on("error", (error) => options.onOutput(`its output broke: ${error.message}`));
  }

  /** Lost where it has ended: then onExit says so. */
  send(message: object): void {
    if (this.#child.connected) this.#child.send(message, () => {});
  }

  /** Ends it with all that it started; quickly, for the end of our own program, without much of a chance to tidy up. */
  async end(how: "gently" | "quickly"): Promise<void> {
    this.#isEnding = true;
    const tree = { group: this.#child.pid, mark: this.#mark };
    await endTree(tree, how === "quickly" ? AbortSignal.abort() : undefined);
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
