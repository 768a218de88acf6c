import { z } from "zod";
import description from "../../../prompts/tools/bash.md";
import type { PermissionRequest } from "../../permission/rule.ts";
import type { ShownText } from "../../shell/facts.ts";
import type { TrackedCommand } from "../../workspace/changes/command-changes.ts";
import type { ProcessOutcome } from "../../workspace/process/process.ts";
import { BashOutput, type OutputResult } from "./bash-output.ts";
import { endNote, nothingPrinted } from "./command-end.ts";
import { resolveFolder } from "../search/folder.ts";
import { changesNoFiles, listWrittenPaths, recordChanges, type RecordedChanges } from "./record-changes.ts";
import { hasNoNul } from "../invalid.ts";
import { getOutsideAccess } from "../paths.ts";
import { noteShownText } from "../shown-files.ts";
import { assertSameTarget } from "../text-file.ts";
import {
  type Blocked,
  type ConfineCommand,
  type Confined,
  describeBlocked,
  joinRuns,
  openConfinement,
  requestLeave,
} from "./sandboxed-command.ts";
import {
  defineTool,
  ToolFailure,
  type RunContext,
  type Tool,
  type ToolContext,
  type ToolResult,
} from "../tool.ts";

const DEFAULT_TIMEOUT_MS = 120_000;
const MAX_TIMEOUT_MS = 600_000;

/** Where a command line runs, to resolve its relative paths and `~`. */
export interface ShellFolders {
  /** The session's working directory, to which paths in rules are relative; an absolute real path. */
  cwd: string;
  /** The folder in which the command runs; an absolute real path. */
  start: string;
  home: string;
  roots: readonly string[];
}

/** What a command line does, without running it. */
export interface ShellAnalysis {
  /** Returns the permissions that it needs. */
  readonly analyze: (
    command: string,
    folders: ShellFolders,
  ) => PermissionRequest[] | Promise<PermissionRequest[]>;
  /** Returns the files whose text it prints. */
  readonly findShown: (
    command: string,
    folders: ShellFolders,
  ) => readonly ShownText[] | Promise<readonly ShownText[]>;
}

const nulRefusal = "A command cannot contain a NUL character; let printf '\\0' make one";

const inputSchema = z.object({
  command: z.string().trim().min(1).refine(hasNoNul, nulRefusal).describe("The command line, for bash."),
  description: z.string().optional().describe("What it does, in 5 to 10 words."),
  timeout: z
    .number()
    .positive()
    .optional()
    .describe(
      `Milliseconds until it is ended. ${DEFAULT_TIMEOUT_MS} unless given, ${MAX_TIMEOUT_MS} at most.`,
    ),
  workdir: z
    .string()
    .optional()
    .describe("The folder to run it in, instead of cd. The working directory unless given."),
});
type Input = z.infer<typeof inputSchema>;

export function bashTool({
  analyze,
  findShown,
  confine,
}: ShellAnalysis & { confine?: ConfineCommand }): Tool {
  return defineTool<Input>({
    name: "bash",
    otherNames: [
      "shell",
      "sh",
      "run_shell_command",
      "execute_command",
      "run_terminal_cmd",
      "exec_command",
      "run_command",
      "terminal",
      "exec",
      "execute",
      "run_bash",
      "run_in_terminal",
      "shell_command",
      "local_shell",
      "container.exec",
      "run_terminal_command",
      "execute_bash",
      "bash_command",
    ],
    aliases: {
      command: ["cmd", "script", "command_line", "shell_command", "bash_command"],
      workdir: ["cwd", "working_directory", "work_dir", "directory", "dir"],
      timeout: ["timeout_ms"],
      description: ["explanation", "reason"],
    },
    description,
    input: inputSchema,
    kind: "execute",
    concurrency: "exclusive",
    access: ({ command, workdir }, context) => getOutsideAccess(context, [workdir], { title: command }),
    prepare: async (input, context) => {
      const folder = await resolveFolder(context, input.workdir);
      const { cwd, home, roots } = context.workspace;
      const folders = { cwd, start: folder.path, home, roots };
      const command = await analyze(input.command, folders);
      const isElsewhere = folder.path !== cwd;
      return {
        title: input.command,
        locations: input.workdir === undefined ? [] : [{ path: folder.path }],
        ...(isElsewhere && { preview: { text: `It runs in ${folder.title}.` } }),
        permissions: [...folder.external, ...command],
        run: async (run) => {
          await assertSameTarget(context.workspace, folder.path);
          assertCovered(await analyze(input.command, folders), command, run);
          const shown = await findShown(input.command, folders);
          const track = async () =>
            changesNoFiles(command)
              ? undefined
              : context.workspace.changeTracker.start(roots, listWrittenPaths(command, cwd));
          const line = { command: input.command, start: folder.path, requests: command };
          const confinement = await openConfinement(confine, line, run);
          const start = async (confined: typeof confinement) =>
            runCommand(input, { cwd: folder.path, shown, tracked: await track(), confined }, context, run);
          const { result, blocked } = await start(confinement);
          if (blocked === undefined) return result;
          const decision = await requestLeave(line, blocked, run);
          if (decision.outcome !== "allowed") return describeBlocked(result, decision);
          const again = await start(undefined);
          return joinRuns(result, again.result, blocked);
        },
      };
    },
  });
}

/**
 * Throws {@link ToolFailure} if the command now needs a permission that was neither granted nor asked for, because
 * files or links changed meanwhile.
 */
function assertCovered(
  now: readonly PermissionRequest[],
  judged: readonly PermissionRequest[],
  run: RunContext,
): void {
  const known = new Set(judged.flatMap(splitSubjects).map(describeRequest));
  const other = now
    .flatMap(splitSubjects)
    .find((one) => !known.has(describeRequest(one)) && !run.isAllowed([one]));
  if (other === undefined) return;
  throw new ToolFailure(
    `Not run: the files changed meanwhile, and it would now need ${describeRequest(other)}. Call it again.`,
  );
}

/** Creates one request per subject. */
function splitSubjects(request: PermissionRequest): PermissionRequest[] {
  return request.subjects.map((subject) => ({ ...request, subjects: [subject] }));
}

function describeRequest({ permission, subjects }: PermissionRequest): string {
  return `${permission} for ${subjects.map(({ text }) => text).join()}`;
}

interface CommandPlace {
  readonly cwd: string;
  /** The files whose text it prints. */
  readonly shown: readonly ShownText[];
  /** Undefined for a command that changes no files. */
  readonly tracked: TrackedCommand | undefined;
  readonly confined: Confined | undefined;
}

/** The result of a run, and what the sandbox blocked in it. */
interface RunResult {
  readonly result: ToolResult;
  readonly blocked: Blocked | undefined;
}

async function runCommand(
  input: Input,
  { cwd, shown, tracked, confined }: CommandPlace,
  { seen, workspace }: ToolContext,
  run: RunContext,
): Promise<RunResult> {
  const output = new BashOutput({
    limits: run.limits,
    show: (delta) => run.output(delta),
    waitUntilReady: () => run.waitUntilReady(),
  });
  const timeoutMs = Math.min(input.timeout ?? DEFAULT_TIMEOUT_MS, MAX_TIMEOUT_MS);
  const start = performance.now();
  const startDate = Date.now();
  const command = { command: input.command, cwd, timeoutMs, signal: run.signal, confine: confined?.confine };
  try {
    const outcome = await workspace.processes.run({ ...command, onOutput: (text) => output.push(text) });
    const seconds = ((performance.now() - start) / 1_000).toFixed(1);
    const printed = await output.end();
    if (outcome.exitCode === 0 && outcome.end === "exited" && !printed.truncated)
      await noteShownText(seen, shown, { text: printed.text, start: startDate });
    const blocked = outcome.exitCode === 0 ? undefined : confined?.findBlocked(printed.text);
    const added = await confined?.findAddedFiles();
    const sandboxNotes = [...(blocked?.notes ?? []), ...(added === undefined ? [] : [added])];
    const notes = [...endNotes(outcome, { seconds, timeoutMs }), ...sandboxNotes];
    if (outcome.end === "timed-out" || outcome.background || sandboxNotes.length > 0) output.note(notes);
    const recorded = tracked && (await recordChanges(await tracked.finish(), workspace.snapshots));
    return { result: addChanges(toResult(outcome, printed, notes), recorded), blocked };
  } finally {
    await output.close();
  }
}

interface Timing {
  /** Run time. */
  seconds: string;
  timeoutMs: number;
}

function toResult(outcome: ProcessOutcome, shown: OutputResult, endNotes: readonly string[]): ToolResult {
  if (outcome.end === "failed-to-start")
    throw new ToolFailure(
      `${outcome.error ?? "The command could not be started."} Check workdir and the shell, or tell the user.`,
    );
  const output = shown.text.trimEnd() || nothingPrinted;
  const notes = [...(shown.note === undefined ? [] : [shown.note]), ...endNotes].join("\n\n");
  const { exitCode, signalName } = outcome;
  const metadata = {
    exitCode,
    ...(signalName !== null && { signal: signalName }),
    truncated: shown.truncated,
    outputPath: shown.path,
  };
  const result = { ...(notes !== "" && { notes }), metadata };
  if (outcome.end === "cancelled") return { status: "failed", error: output, ...result };
  return { status: "completed", output, ...result };
}

function addChanges(result: ToolResult, recorded: RecordedChanges | undefined): ToolResult {
  if (recorded === undefined) return result;
  const { changes, notUndone } = recorded;
  return {
    ...result,
    ...(changes.length > 0 && { changes }),
    ...(notUndone.length > 0 && { metadata: { ...result.metadata, notUndone } }),
  };
}

function endNotes(outcome: ProcessOutcome, timing: Timing): string[] {
  const background = outcome.background ? ["[Processes that it started still run in the background.]"] : [];
  return [...describeEnd(outcome, timing), ...background];
}

function describeEnd(
  { end, exitCode, signalName }: ProcessOutcome,
  { seconds, timeoutMs }: Timing,
): string[] {
  if (end === "cancelled") return [`[Cancelled after ${seconds} s; above is what it had printed.]`];
  if (end === "timed-out") {
    const advice = `If it needs longer, give a larger timeout (${MAX_TIMEOUT_MS} at most) or run it in the background.`;
    return [
      `[Ended after ${seconds} s because its time of ${timeoutMs} ms was up; above is what it had printed. ${advice}]`,
    ];
  }
  const note = endNote(exitCode, signalName);
  return note === undefined ? [] : [note];
}
