import { realpath } from "node:fs/promises";
import { resolve } from "node:path";
import { once } from "node:events";
import { parseArgs } from "node:util";
import { messageOf, UserError } from "../base/errors.ts";
import { checkCommand, describeCheck, type CheckedCommand } from "../permission/check.ts";
import { localApp } from "./local-app.ts";
import { UsageError } from "./usage.ts";

/** `fairlead permissions check`: says what the rules decide over command lines. Runs none of them. */
export async function permissions(args: readonly string[]): Promise<number> {
  const [verb, ...rest] = args;
  if (verb !== "check")
    throw new UsageError('permissions takes check: fairlead permissions check "git push"');
  const { values, positionals } = parsed(rest);
  const check = await openCheck(resolve(values.cwd ?? "."), values.agent);
  const toLine = (checked: CheckedCommand) =>
    values.json ? JSON.stringify(checked) : describeCheck(checked);
  if (positionals.length > 0) {
    await print(toLine(check(positionals.join(" "))));
    return 0;
  }
  for await (const command of linesOf(process.stdin)) {
    if (command.trim() !== "") await print(toLine(check(command)));
  }
  return 0;
}

function parsed(args: readonly string[]) {
  try {
    return parseArgs({
      args: [...args],
      allowPositionals: true,
      options: { json: { type: "boolean" }, agent: { type: "string" }, cwd: { type: "string" } },
    });
  } catch (error) {
    throw new UsageError(messageOf(error));
  }
}

/** With the rules, limits and approvals that a session of the folder would have. */
async function openCheck(
  folder: string,
  name: string | undefined,
): Promise<(command: string) => CheckedCommand> {
  const { app, project } = await localApp(await existing(folder));
  for (const problem of project.problems) process.stderr.write(`fairlead: ${problem}\n`);
  const agent = project.agents.get(name ?? project.defaultAgent);
  if (agent === undefined)
    throw new UsageError(`there is no agent "${name}"; there are ${[...project.agents.keys()].join(", ")}`);
  const approvals = (await app.openApprovals(project.id)).rules();
  const context = app.shellContext(project.workspace);
  const authority = { rules: agent.rules, limits: agent.limits, approvals };
  return (command) => checkCommand(command, context, authority);
}

async function existing(folder: string): Promise<string> {
  try {
    return await realpath(folder);
  } catch (error) {
    throw new UserError(`There is no folder ${folder}.`, { cause: error });
  }
}

/** Ended by a line feed alone, as a shell ends them: other ends of lines belong to the command. */
async function* linesOf(input: NodeJS.ReadStream): AsyncIterable<string> {
  input.setEncoding("utf8");
  let open = "";
  for await (const chunk of input) {
    const lines = `${open}${String(chunk)}`.split("\n");
    open = lines.pop() ?? "";
    for (const line of lines) yield line.replace(/\r$/, "");
  }
  yield open;
}

/** Waits for a reader that is slow. */
async function print(line: string): Promise<void> {
  if (!process.stdout.write(`${line}\n`)) await once(process.stdout, "drain");
}
