import type { Decision, PermissionRequest } from "../../permission/rule.ts";
import type { CommandToRun, Confinement } from "../../sandbox/project-sandbox.ts";
import type { Confine } from "../../workspace/process/process.ts";
import { toSandboxRequest } from "./sandbox-request.ts";
import { type RunContext, ToolFailure, type ToolResult } from "../tool.ts";

/** Decides how an allowed command line runs. */
export type ConfineCommand = (command: CommandToRun) => Promise<Confinement>;

/** What the sandbox blocked in a run, as far as the output shows it. */
export interface Blocked {
  /** Why, as the end of a sentence about the command: "it has no network". */
  readonly reason: string;
  /** Whether the user may be asked to run it outside. */
  readonly mayLeave: boolean;
  /** For the model and the user, after the output. */
  readonly notes: readonly string[];
}

/** How a confined command starts, and how its failure is explained. */
export interface Confined {
  readonly confine: Confine;
  findBlocked(output: string): Blocked | undefined;
  /** Returns a note about files that appeared and that the command should not have created. */
  findAddedFiles(): Promise<string | undefined>;
}

type Line = Pick<CommandToRun, "command" | "start" | "requests">;

/** Returns how the command is confined; undefined if it is not. Throws {@link ToolFailure} if it must not run. */
export async function openConfinement(
  confine: ConfineCommand | undefined,
  line: Line,
  run: RunContext,
): Promise<Confined | undefined> {
  const confinement = await confine?.({
    ...line,
    isSandboxed: run.isSandboxed === true,
    rules: run.rules?.() ?? [],
    isAllowedOutside: run.isAllowed([toRequest(line)]),
  });
  if (confinement === undefined) {
    if (run.isSandboxed === true) throw new ToolFailure("Not run: no sandbox is available for this command.");
    return undefined;
  }
  if (confinement.kind === "refused") throw new ToolFailure(confinement.reason);
  if (confinement.kind === "none") return undefined;
  const { mayLeave } = confinement;
  return {
    confine: (argv) => confinement.confine(argv),
    findAddedFiles: () => confinement.findAddedFiles(),
    findBlocked: (output) => {
      const reason = confinement.findBlockedReason(output);
      return reason === undefined
        ? undefined
        : { reason, mayLeave, notes: [`[Blocked by the sandbox: ${reason}.]`] };
    },
  };
}

/** Asks whether the command may run again, outside the sandbox. */
export async function requestLeave(
  line: Line,
  { reason, mayLeave }: Blocked,
  run: RunContext,
): Promise<Decision> {
  if (!mayLeave || run.request === undefined)
    return { outcome: "unasked", problem: "The configuration requires the sandbox." };
  return run.request(
    [toRequest(line, `it failed in the sandbox: ${reason}`)],
    "It runs again from its start, outside the sandbox.",
  );
}

/** Adds to a blocked run why it did not run outside. */
export function describeBlocked(result: ToolResult, decision: Decision): ToolResult {
  return addNote(result, `[It did not run outside the sandbox: ${describeRefusal(decision)}]`);
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

/** Returns the result of the run outside, with the changes of both runs. */
export function joinRuns(inside: ToolResult, outside: ToolResult, { reason }: Blocked): ToolResult {
  const changes = [...(inside.changes ?? []), ...(outside.changes ?? [])];
  const note = `[It failed in the sandbox because ${reason}; this is the output of a second run, outside it.]`;
  return addNote({ ...outside, ...(changes.length > 0 && { changes }) }, note);
}

function addNote(result: ToolResult, note: string): ToolResult {
  const { notes } = result;
  return { ...result, notes: notes === undefined || notes === "" ? note : `${notes}\n\n${note}` };
}

function toRequest({ requests, command }: Line, asked?: string): PermissionRequest {
  return toSandboxRequest(requests, command, asked);
}
