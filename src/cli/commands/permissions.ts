import type { Approvals } from "../../permission/approvals.ts";
import { checkCommand, describeCheck, type CheckedCommand } from "./permission-check.ts";
import { findShell } from "../../workspace/process/find-shell.ts";
import { createShellContext } from "../../tool/command-analysis.ts";
import type { Call } from "../command-line/command.ts";
import { openLocalApp } from "../local-app.ts";
import { print, printJson, printTable, writeNotice } from "../terminal/output.ts";
import { UsageError } from "../command-line/usage.ts";

/** Shows what the rules decide for command lines, without running them. */
export async function checkCommands(call: Call): Promise<number> {
  const check = await openCheck(call.text("cwd") ?? ".", call.text("agent"));
  const toLine = (checked: CheckedCommand) =>
    call.has("json") ? JSON.stringify(checked) : describeCheck(checked);
  if (call.operands.length > 0) {
    await print(toLine(check(call.operands.join(" "))));
    return 0;
  }
  for await (const command of readLines(process.stdin)) {
    if (command.trim() !== "") await print(toLine(check(command)));
  }
  return 0;
}

/** Lists permanent approvals with the numbers that `revoke` takes. */
export async function listApprovals(call: Call): Promise<number> {
  const approvals = (await openApprovals(call)).list();
  const rows = approvals.map(({ permission, pattern }, at) => [String(at + 1), permission, pattern]);
  if (call.has("json"))
    await printJson(approvals.map(({ permission, pattern }) => ({ permission, pattern })));
  else await printTable([{ name: "no", right: true }, { name: "permission" }, { name: "pattern" }], rows);
  if (rows.length === 0 && !call.has("json"))
    await print("There are no permanent approvals in this project.");
  return 0;
}

export async function revokeApprovals(call: Call): Promise<number> {
  const approvals = await openApprovals(call);
  const known = approvals.list();
  const wanted = call.operands.map((number) => {
    const approval = /^\d+$/.test(number) ? known[Number(number) - 1] : undefined;
    if (approval === undefined)
      throw new UsageError(`there is no approval ${number}; fairlead permissions list shows them`, call.name);
    return approval;
  });
  for (const approval of wanted) {
    await approvals.revoke(approval);
    await print(`Revoked: ${approval.permission} ${approval.pattern}`);
  }
  return 0;
}

async function openApprovals(call: Call): Promise<Approvals> {
  const { app, project } = await openLocalApp(call.text("cwd"));
  return app.records.openApprovals(project.id);
}

/** Creates a check with the rules, limits and approvals of a session in the folder. */
async function openCheck(
  folder: string,
  name: string | undefined,
): Promise<(command: string) => CheckedCommand> {
  const { app, project } = await openLocalApp(folder);
  for (const problem of project.problems) writeNotice(problem);
  const agent = project.agents.get(name ?? project.defaultAgent);
  if (agent === undefined)
    throw new UsageError(`there is no agent "${name}"; agents: ${[...project.agents.keys()].join(", ")}`);
  const approvals = (await app.records.openApprovals(project.id)).rules();
  const shell = await findShell(process.env);
  const context = createShellContext({ ...project.workspace, shell });
  const authority = { rules: agent.rules, limits: agent.limits, approvals };
  return (command) => checkCommand(command, context, authority);
}

/** Splits the input at line feeds only, as shells do: other line separators belong to the command. */
async function* readLines(input: NodeJS.ReadStream): AsyncIterable<string> {
  input.setEncoding("utf8");
  let open = "";
  for await (const chunk of input) {
    const lines = `${open}${String(chunk)}`.split("\n");
    open = lines.pop() ?? "";
    for (const line of lines) yield line.replace(/\r$/, "");
  }
  yield open;
}
