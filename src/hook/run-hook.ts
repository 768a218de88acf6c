import type { Readable } from "node:stream";
import { z } from "zod";
import { orAfter, orWhenAborted } from "../base/async.ts";
import { messageOf } from "../base/errors.ts";
import { excerpt } from "../base/text/excerpt.ts";
import type { PipedCommand, PipedProcesses } from "../workspace/process/piped-process.ts";
import type { Confine } from "../workspace/process/process.ts";

/** Characters of an output that are read. */
const outputLimit = 200_000;
/** Characters of a hook's text for the model or the user. */
const textLimit = 10_000;
/** The exit code with which a hook blocks. */
const blockingCode = 2;

export interface HookCommand {
  readonly command: string;
  /** The shell that runs it: one that reads `-c`, or `cmd.exe`. */
  readonly shell: string;
  readonly timeoutMs: number;
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  /** Runs it in the sandbox. */
  readonly confine: Confine | undefined;
  /** Written to its stdin as JSON. */
  readonly input: unknown;
}

/** The answer of a hook. */
export type HookAnswer =
  /** Exit code 2; the text is its stderr. */
  | { readonly kind: "blocked"; readonly text: string }
  | { readonly kind: "passed"; readonly output: HookOutput }
  /** Any other end; it decides nothing. */
  | { readonly kind: "failed"; readonly problem: string };

const outputSchema = z.looseObject({
  continue: z.boolean().optional(),
  stopReason: z.string().optional(),
  systemMessage: z.string().optional(),
  decision: z.string().optional(),
  reason: z.string().optional(),
  hookSpecificOutput: z
    .looseObject({
      permissionDecision: z.string().optional(),
      permissionDecisionReason: z.string().optional(),
      updatedInput: z.record(z.string(), z.unknown()).optional(),
      additionalContext: z.string().optional(),
    })
    .optional(),
});
export type HookOutput = z.infer<typeof outputSchema>;

/** Runs a hook. Never rejects; an abort ends it. */
export async function runHook(
  hook: HookCommand,
  processes: PipedProcesses,
  signal: AbortSignal,
): Promise<HookAnswer> {
  try {
    return await runToEnd(hook, processes, signal);
  } catch (error) {
    return { kind: "failed", problem: messageOf(error) };
  }
}

async function runToEnd(
  { command, shell, timeoutMs, cwd, env, confine, input }: HookCommand,
  processes: PipedProcesses,
  signal: AbortSignal,
): Promise<HookAnswer> {
  const child = await processes.start({ ...shellLine(command, shell), cwd, env, confine });
  const printed = Promise.all([readStart(child.output), readStart(child.errors)]);
  child.input.end(JSON.stringify(input));
  const ended = await orWhenAborted(orAfter(child.exited, timeoutMs, undefined), signal, undefined);
  await child.end();
  if (ended === undefined)
    return {
      kind: "failed",
      problem: signal.aborted ? "it was cancelled" : `it took longer than ${timeoutMs / 1_000} seconds`,
    };
  const [output, errors] = await printed;
  if (ended.code === blockingCode)
    return { kind: "blocked", text: excerpt(errors.trim(), textLimit) || "no reason was given" };
  if (ended.code !== 0) {
    const text = errors.trim() === "" ? "" : `: ${excerpt(errors.trim(), textLimit)}`;
    return { kind: "failed", problem: `exit code ${ended.code ?? ended.signalName ?? "none"}${text}` };
  }
  return parseOutput(output);
}

/** Returns the command line of the shell. `cmd` does not read quotes as other programs do. */
export function shellLine(
  command: string,
  shell: string,
): Pick<PipedCommand, "command" | "args" | "verbatim"> {
  if (shell.endsWith("cmd.exe"))
    return { command: shell, args: ["/d", "/s", "/c", `"${command}"`], verbatim: true };
  return { command: shell, args: ["-c", command] };
}

/** Text that is not a JSON object has no meaning. */
function parseOutput(output: string): HookAnswer {
  const text = output.trim();
  if (!text.startsWith("{")) return { kind: "passed", output: {} };
  try {
    const parsed = outputSchema.safeParse(JSON.parse(text));
    if (parsed.success) return { kind: "passed", output: parsed.data };
    return { kind: "failed", problem: `its answer is invalid: ${z.prettifyError(parsed.error)}` };
  } catch (error) {
    return { kind: "failed", problem: `its answer is not valid JSON: ${messageOf(error)}` };
  }
}

/** Reads to the end, and returns the beginning. */
async function readStart(stream: Readable): Promise<string> {
  stream.setEncoding("utf8");
  let text = "";
  try {
    for await (const chunk of stream) if (text.length < outputLimit) text += String(chunk);
  } catch {
    // Its process was ended.
  }
  return text.slice(0, outputLimit);
}
