import { evaluate } from "../../permission/judge.ts";
import {
  type Action,
  connectPermission,
  type Decision,
  type PermissionRequest,
  sandboxPermission,
} from "../../permission/rule.ts";
import type { CommandToRun, Confinement, ProjectSandbox } from "../../sandbox/project-sandbox.ts";
import type { Confine, ProcessOutcome } from "../../workspace/process/process.ts";
import { addNotes, type RunContext, ToolFailure, type ToolResult } from "../tool.ts";

/** Questions about one call, each of which leads to another run. */
const questionLimit = 5;

/** Loads the sandbox of the project, which decides how an allowed command line runs. */
export type LoadSandbox = () => Promise<ProjectSandbox>;

/** Why the sandbox made a command fail, as its output shows. */
export interface Blocked {
  /** Why, as the end of a sentence about the command: "it has no network". */
  readonly reason: string;
  /** The hosts that it may be allowed to reach inside the sandbox. Without any it can only run outside. */
  readonly hosts: readonly string[];
  /** Whether the user may be asked to run it outside. */
  readonly mayLeave: boolean;
}

/** How a confined command starts, and how its failure is explained. */
export interface Confined {
  readonly confine: Confine;
  /** Called once, at the end. `blocked` is set if the command failed because of the sandbox. */
  explain(output: string, end: Pick<ProcessOutcome, "exitCode" | "background">): Promise<Explanation>;
}

/** Why a command failed in the sandbox, and notes about it for the model and the user. */
export interface Explanation {
  readonly blocked: Blocked | undefined;
  readonly notes: readonly string[];
}

/** A run of a command, and what the sandbox blocked in it. */
interface Run {
  readonly result: ToolResult;
  readonly blocked: Blocked | undefined;
}

type Line = Pick<CommandToRun, "command" | "start" | "requests">;

/**
 * Runs an allowed command line as the sandbox of the session says. What the sandbox blocks can be allowed by the user;
 * then the command runs again. Throws {@link ToolFailure} if it must not run.
 */
export async function runSandboxed(
  start: (confined: Confined | undefined) => Promise<Run>,
  line: Line,
  run: RunContext,
  loadSandbox: LoadSandbox | undefined,
): Promise<ToolResult> {
  const hosts: string[] = [];
  const notes: string[] = [];
  let { result, blocked } = await start(await openConfinement(loadSandbox, line, run, hosts));
  for (let questions = 0; blocked !== undefined && questions < questionLimit; questions++) {
    const decision = await request(line, blocked, run);
    if (decision.outcome !== "allowed") {
      notes.push(describeRefused(blocked, decision));
      break;
    }
    hosts.push(...blocked.hosts);
    notes.push(describeNextRun(blocked));
    const isInside = blocked.hosts.length > 0;
    const next = await start(isInside ? await openConfinement(loadSandbox, line, run, hosts) : undefined);
    result = joinRuns(result, next.result);
    blocked = isInside ? next.blocked : undefined;
  }
  return addNotes(result, notes);
}

/** Returns how the command is confined; undefined if it is not. Throws {@link ToolFailure} if it must not run. */
async function openConfinement(
  loadSandbox: LoadSandbox | undefined,
  line: Line,
  run: RunContext,
  hosts: readonly string[],
): Promise<Confined | undefined> {
  if (loadSandbox === undefined) {
    if (run.isSandboxed === true) throw new ToolFailure("Not run: no sandbox is available for this command.");
    return undefined;
  }
  const sandbox = await loadSandbox();
  const confinement = await sandbox.open({
    ...line,
    isSandboxed: run.isSandboxed === true,
    rules: run.rules?.() ?? [],
    isAllowedOutside: run.isAllowed([toSandboxRequest(line.requests, line.command)]),
    hosts,
    judgeConnection: (target) => judgeConnection(target, run),
  });
  if (confinement.kind === "refused") throw new ToolFailure(confinement.reason);
  if (confinement.kind === "none") return undefined;
  return {
    confine: (argv) => confinement.confine(argv),
    explain: async (output, { exitCode, background }) => {
      const blocked = findBlocked(confinement, output);
      const added = await confinement.findAddedFiles(background);
      const isFailed = exitCode !== 0;
      const isNamed = blocked !== undefined && (isFailed || blocked.hosts.length > 0);
      return {
        blocked: isFailed ? blocked : undefined,
        notes: [
          ...(isNamed ? [`[Blocked by the sandbox: ${blocked.reason}.]`] : []),
          ...(added === undefined ? [] : [added]),
        ],
      };
    },
  };
}

function findBlocked(
  confinement: Extract<Confinement, { kind: "confined" }>,
  output: string,
): Blocked | undefined {
  const { mayLeave } = confinement;
  const hosts = confinement.listBlockedHosts();
  const reason =
    hosts.length > 0 ? `it may not connect to ${hosts.join(", ")}` : confinement.findBlockedReason(output);
  return reason === undefined ? undefined : { reason, hosts, mayLeave };
}

/** Asks whether the command may run again with its hosts, or outside. */
async function request(
  { requests, command }: Line,
  { reason, hosts, mayLeave }: Blocked,
  run: RunContext,
): Promise<Decision> {
  const why = `it failed in the sandbox: ${reason}`;
  if (hosts.length > 0)
    return ask(run, toConnectRequest(hosts, why), `It runs again from its start, with ${hosts.join(", ")}.`);
  if (!mayLeave) return { outcome: "unasked", problem: "The configuration requires the sandbox." };
  const leave = toSandboxRequest(requests, command, why);
  return ask(run, leave, "It runs again from its start, outside the sandbox.");
}

async function ask(run: RunContext, permission: PermissionRequest, text: string): Promise<Decision> {
  return (
    (await run.request?.([permission], text)) ?? { outcome: "unasked", problem: "Nobody can be asked here." }
  );
}

/**
 * Returns the request to run a command line outside the sandbox, from what the line needs. Only rules and approvals for
 * `sandbox` by its name allow it. `asked` is why the user is asked. "Always" offers the patterns of its commands, if each
 * has one.
 */
function toSandboxRequest(
  requests: readonly PermissionRequest[],
  commandLine: string,
  asked?: string,
): PermissionRequest {
  const commands = requests.filter(({ permission }) => permission === "bash");
  const subjects = commands.flatMap((command) => command.subjects);
  const canRemember = commands.length > 0 && commands.every(({ always }) => always.length > 0);
  return {
    permission: sandboxPermission,
    subjects: (subjects.length > 0 ? subjects : [{ text: commandLine }]).map((subject) => ({
      ...subject,
      ...(asked !== undefined && { asked }),
    })),
    always: canRemember ? [...new Set(commands.flatMap(({ always }) => always))] : [],
    byNameOnly: true,
  };
}

/** Returns the request to connect to hosts from the sandbox. Only rules and approvals for `connect` by its name allow it. */
function toConnectRequest(hosts: readonly string[], asked?: string): PermissionRequest {
  return {
    permission: connectPermission,
    subjects: hosts.map((text) => ({ text, ...(asked !== undefined && { asked }) })),
    always: hosts,
    byNameOnly: true,
  };
}

/** Returns what rules and approvals say about a connection from the sandbox. */
function judgeConnection(host: string, run: RunContext): Action {
  const request = toConnectRequest([host]);
  if (run.isAllowed([request])) return "allow";
  const rules = run.rules?.() ?? [];
  return rules.some((list) => evaluate(request, list).action === "deny") ? "deny" : "ask";
}

/** Returns why a blocked command did not run again. */
function describeRefused({ hosts }: Blocked, decision: Decision): string {
  const what = hosts.length > 0 ? "It did not run again" : "It did not run outside the sandbox";
  return `[${what}: ${describeRefusal(decision)}]`;
}

function describeNextRun({ reason, hosts }: Blocked): string {
  const where = hosts.length > 0 ? "with the connection" : "outside it";
  return `[It failed in the sandbox because ${reason}; the output above is of another run, ${where}.]`;
}

function describeRefusal(decision: Decision): string {
  switch (decision.outcome) {
    case "rejected":
      return decision.feedback === undefined
        ? "the user did not allow it. Do not try to get around the sandbox."
        : `the user did not allow it and says: ${decision.feedback}`;
    case "denied":
      return "a rule denies it.";
    case "unasked":
      return `${decision.problem} Go on without it, or tell the user what is needed.`;
    case "cancelled":
    case "allowed":
      return "the question was withdrawn.";
  }
}

/** Returns the result of the second run, with the changes of both runs. */
function joinRuns(first: ToolResult, second: ToolResult): ToolResult {
  const changes = [...(first.changes ?? []), ...(second.changes ?? [])];
  return { ...second, ...(changes.length > 0 && { changes }) };
}
