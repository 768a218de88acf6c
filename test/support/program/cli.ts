import { fileURLToPath } from "node:url";
import { execa } from "execa";
import { environment } from "./environment.ts";

const program = fileURLToPath(new URL("../../../bin/fairlead.js", import.meta.url));

export interface CommandResult {
  exitCode: number | undefined;
  stdout: string;
  stderr: string;
}

/** Runs a command of the built program in a new home. */
export async function fairlead(
  home: string,
  args: readonly string[],
  options: { cwd?: string; input?: string; env?: Record<string, string> } = {},
): Promise<CommandResult> {
  const { exitCode, stdout, stderr } = await execa(process.execPath, [program, ...args], {
    cwd: options.cwd ?? home,
    input: options.input ?? "",
    env: { ...environment(home), ...options.env },
    extendEnv: false,
    reject: false,
    timeout: 60_000,
  });
  return { exitCode, stdout, stderr };
}
