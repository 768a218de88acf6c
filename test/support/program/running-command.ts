import { spawn, type ChildProcessWithoutNullStreams } from "node:child_process";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import type { CommandResult } from "./cli.ts";
import { environment } from "./environment.ts";
import { visit } from "../mcp/mcp-oauth-server.ts";
import { Bell } from "../waiting.ts";

const program = fileURLToPath(new URL("../../../bin/fairlead.js", import.meta.url));

/** The running command, until it has ended. */
export class RunningCommand {
  readonly bell = new Bell();
  readonly result: Promise<CommandResult>;
  readonly #child: ChildProcessWithoutNullStreams;
  #stderr = "";

  constructor(home: string, args: string[]) {
    this.#child = spawn(process.execPath, [program, ...args], { cwd: home, env: environment(home) });
    this.#child.stderr.setEncoding("utf8").on("data", (chunk: string) => {
      this.#stderr += chunk;
      this.bell.ring();
    });
    const ended = new Promise<number | undefined>((resolve) =>
      this.#child.once("close", (code) => resolve(code ?? undefined)),
    );
    this.result = Promise.all([ended, text(this.#child.stdout)]).then(([exitCode, stdout]) => ({
      exitCode,
      stdout,
      stderr: this.#stderr,
    }));
  }

  /** The address that the user must open. */
  address(): Promise<string> {
    return this.bell.until(() => /http\S+\/authorize\?\S+/.exec(this.#stderr)?.[0], "the address");
  }

  waitForOutput(words: string): Promise<boolean> {
    return this.bell.until(() => this.#stderr.includes(words) || undefined, words);
  }

  type(line: string): void {
    this.#child.stdin.write(`${line}\n`);
  }

  interrupt(): void {
    this.#child.kill("SIGINT");
  }
}

/** Authorizes a server in a terminal, as a user who agrees to everything. */
export async function authorizeInTerminal(home: string, server: string): Promise<CommandResult> {
  const running = new RunningCommand(home, ["mcp", "auth", server]);
  await visit(await running.address());
  return running.result;
}
