import { z } from "zod";
import description from "../../../prompts/tools/bash.md";
import type { PermissionRequest } from "../../permission/rule.ts";
import type { ResolvedPath } from "../../workspace/paths.ts";
import { dialectOf } from "../../shell/syntax/dialect.ts";
import { changesNoFiles, listWrittenPaths } from "./record-changes.ts";
import { maxTimeoutMs, runCommand } from "./run-command.ts";
import type { ShellAnalysis } from "../command-analysis.ts";
import { hasNoNul } from "../invalid.ts";
import {
  externalPermissions,
  getOutsideAccess,
  missingPathMessage,
  resolveToolPath,
  titleOf,
} from "../paths.ts";
import { describeNews } from "../parallel/others.ts";
import { assertSameTarget } from "../text-file.ts";
import { type Confined, type LoadSandbox, runSandboxed } from "./sandboxed-command.ts";
import {
  addNotes,
  defineTool,
  type RunContext,
  type Tool,
  type ToolContext,
  ToolFailure,
  type ToolResult,
} from "../tool.ts";

const nulRefusal = "A command cannot contain a NUL character; let printf '\\0' make one";

const inputSchema = z.object({
  command: z.string().trim().min(1).refine(hasNoNul, nulRefusal),
  description: z.string().optional().describe("What it does, in 5 to 10 words."),
  timeout: z
    .number()
    .positive()
    .optional()
    .describe(`Milliseconds until it is ended, ${maxTimeoutMs} at most.`),
  background: z.boolean().optional().describe("Run it as a job."),
  workdir: z
    .string()
    .optional()
    .describe("The folder to run it in, instead of cd. The working directory unless given."),
});
type Input = z.infer<typeof inputSchema>;

export interface BashToolOptions {
  /** Commands are not confined without it. */
  readonly loadSandbox?: LoadSandbox | undefined;
  /** Name or path of the shell, to which the description refers if it does not have the syntax of bash. */
  readonly shell?: string | undefined;
}

export function bashTool(
  { analyze, findShown }: ShellAnalysis,
  { loadSandbox, shell = "bash" }: BashToolOptions = {},
): Tool {
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
      background: ["run_in_background", "is_background", "detached"],
      description: ["explanation", "reason"],
    },
    description:
      dialectOf(shell) === "bash" ? description : `${description.trim()}\n\n${nameMissingBash(shell)}`,
    input: inputSchema,
    kind: "execute",
    concurrency: "exclusive",
    access: ({ command, workdir }, context) => getOutsideAccess(context, [workdir], { title: command }),
    prepare: async (input, context) => {
      const folder = await resolveWorkdir(context, input.workdir?.trim() || ".");
      const { cwd, home, roots } = context.workspace;
      const shell = await context.workspace.processes.findShell();
      const folders = { cwd, start: folder.path, home, roots, shell };
      const command = await analyze(input.command, folders);
      const isElsewhere = folder.path !== cwd;
      return {
        title: input.command,
        locations: input.workdir === undefined ? [] : [{ path: folder.path }],
        ...(isElsewhere && { preview: { text: `It runs in ${titleOf(context, folder)}.` } }),
        permissions: [...externalPermissions(context, folder), ...command],
        run: async (run) => {
          if (input.background === true) assertCanStart(context);
          await assertSameTarget(context.workspace, folder.path);
          assertCovered(await analyze(input.command, folders), command, run);
          const shown = await findShown(input.command, folders);
          const track = async () =>
            changesNoFiles(command)
              ? undefined
              : context.workspace.changeTracker.start(roots, listWrittenPaths(command, cwd));
          const line = { command: input.command, start: folder.path, requests: command };
          const start = async (confined: Confined | undefined) =>
            runCommand(input, { cwd: folder.path, shown, tracked: await track(), confined }, context, run);
          return addOthersLine(await runSandboxed(start, line, run, loadSandbox), context);
        },
      };
    },
  });
}

const nameMissingBash = (shell: string): string =>
  `This machine has no bash: commands run in ${shell}. Use its syntax only.`;

/** Resolves the folder in which a command runs. Throws {@link ToolFailure} if it is not a folder. */
async function resolveWorkdir(context: ToolContext, raw: string): Promise<ResolvedPath> {
  const resolved = await resolveToolPath(context, raw);
  if (!resolved.exists) throw new ToolFailure(await missingPathMessage(context, resolved, raw));
  if (resolved.kind === "directory") return resolved;
  throw new ToolFailure(`${titleOf(context, resolved)} is a file. Give the folder that holds it.`);
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

/** Names the files that others changed since the session last looked. */
async function addOthersLine(result: ToolResult, context: ToolContext): Promise<ToolResult> {
  const news = await context.recent.takeNews();
  const line = news.length === 0 ? undefined : describeNews(news, context);
  return line === undefined ? result : addNotes(result, [`[${line}]`]);
}

/** Throws {@link ToolFailure} if no more commands can run in the background. */
function assertCanStart({ jobs }: ToolContext): void {
  const refusal = jobs.findRefusal("command");
  if (refusal !== undefined) throw new ToolFailure(`Not run. ${refusal}`);
}
