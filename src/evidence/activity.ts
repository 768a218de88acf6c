import { isRecord } from "../base/text/record.ts";
import type { Activity, ChangedPath, CommandEnd } from "../message/activity.ts";
import { hasRunningJob, type ToolPart } from "../message/part.ts";

/** Longest command line and title, in characters. */
const textLimit = 4_000;
/** Changes of a command that count. */
const changeLimit = 40;
/** Activities of a task that its parent sees; the newest stay. */
export const taskActivityLimit = 100;

/** Tools of kind `other` whose effect is known: they change nothing and run nothing. */
const harmlessTools: ReadonlySet<string> = new Set(["question", "invalid", "job"]);

/** An action of a call with its time. */
export interface CallActivity {
  readonly isTask: boolean;
  readonly did: readonly Activity[];
  /** Milliseconds since 1970. */
  readonly start: number;
  /** Infinite while its job runs. */
  readonly end: number;
}

/** Returns what a finished call did. */
export function describeCall(call: ToolPart): CallActivity {
  const { state } = call;
  const { start, end } = "time" in state && state.time !== undefined ? state.time : { start: 0, end: 0 };
  const job = state.status === "completed" ? state.job : undefined;
  return {
    isTask: call.tool === "task",
    did: toActivity(call),
    start,
    end: job === undefined ? (end ?? start) : (job.end?.time ?? Infinity),
  };
}

/**
 * Orders the activities of calls. If a call ran while a task ran, their order is unknown: then the runs of
 * the task count as earlier than the other call, and its changes as later.
 */
export function orderActivity(calls: readonly CallActivity[]): Activity[] {
  const sorted = calls.toSorted((one, other) => one.start - other.start);
  const timed = sorted.flatMap((call, at): { time: number; did: readonly Activity[] }[] => {
    const { did, start, end } = call;
    const isAlone = !call.isTask || !sorted.some((other, index) => isConcurrent(call, other, index - at));
    if (isAlone) return [{ time: start, did }];
    return [
      { time: start, did: did.filter(({ type }) => type !== "change") },
      { time: end, did: did.flatMap(listChanges) },
    ];
  });
  return timed.toSorted((one, other) => one.time - other.time).flatMap(({ did }) => did);
}

/** Whether another call began while the task ran, or is a task during which it began. */
function isConcurrent(task: CallActivity, other: CallActivity, distance: number): boolean {
  if (distance === 0 || other.did.length === 0) return false;
  if (distance > 0) return other.start < task.end;
  return other.isTask && task.start < other.end;
}

/** Returns an activity that is a change, or the changes of a command. */
export function listChanges(activity: Activity): (Activity & { type: "change" })[] {
  if (activity.type === "change") return [activity];
  if (activity.type !== "command") return [];
  return (activity.changes ?? []).map((change) => ({ type: "change", ...change }));
}

/** Returns what a finished call did; for a task, what its child session did. */
export function toActivity(call: ToolPart): Activity[] {
  const { tool, kind, title, state, decision } = call;
  if (state.status !== "completed" && state.status !== "error") return [];
  if (tool === "bash") {
    const isRefused =
      decision !== undefined && decision.outcome !== "allowed" && decision.outcome !== "cancelled";
    if (isRefused) return [{ type: "refusal" }];
    return toCommand(call);
  }
  if (tool === "task" && hasRunningJob(state))
    return [{ type: "task", title: (title ?? tool).slice(0, textLimit) }];
  if (tool === "task" && Array.isArray(state.metadata?.["activity"]))
    return state.metadata["activity"].flatMap((item) => readActivity(item) ?? []);
  const changes = (state.changes ?? []).flatMap(({ path, fromPath, before, after }): Activity[] =>
    fromPath === undefined
      ? [{ type: "change", path, ...stateOf(before, after) }]
      : [
          { type: "change", path: fromPath, ...stateOf(before, null), isMoved: true },
          { type: "change", path, ...stateOf(null, after) },
        ],
  );
  const hasUnknownEffect = (kind === "other" || kind === "execute") && !harmlessTools.has(tool);
  if (changes.length > 0 || !hasUnknownEffect || state.status !== "completed") return changes;
  return [{ type: "call", title: (title ?? tool).slice(0, textLimit) }];
}

function stateOf(before: string | null | undefined, after: string | null | undefined) {
  return { ...(before !== undefined && { before }), ...(after !== undefined && { after }) };
}

/** Returns nothing for a command that did not run. */
function toCommand({ state, locations }: ToolPart): Activity[] {
  const command = isRecord(state.input) ? state.input["command"] : undefined;
  const end = typeof command === "string" ? readEnd(state) : undefined;
  if (typeof command !== "string" || end === undefined) return [];
  const folder = locations?.[0]?.path;
  const changes = ("changes" in state ? (state.changes ?? []) : [])
    .slice(0, changeLimit)
    .map(({ path, before, after }): ChangedPath => ({ path, ...stateOf(before, after) }));
  return [
    {
      type: "command",
      command: command.slice(0, textLimit),
      ...(folder !== undefined && { folder }),
      ...(changes.length > 0 && { changes }),
      ...end,
    },
  ];
}

function readEnd(state: ToolPart["state"]): CommandEnd | undefined {
  if (state.status === "error") {
    const hasRun = state.time !== undefined && state.time.end !== state.time.start;
    const isCut = state.reason === "cancelled" || state.reason === "interrupted";
    return isCut && hasRun ? { end: "cancelled" } : undefined;
  }
  if (state.status !== "completed") return undefined;
  if (hasRunningJob(state)) return { end: "running" };
  if (state.job?.end?.state === "stopped" || state.job?.end?.state === "lost") return { end: "stopped" };
  const exitCode = state.job === undefined ? state.metadata?.["exitCode"] : state.job.end?.exitCode;
  return typeof exitCode === "number" ? { end: "exited", exitCode } : { end: "stopped" };
}

/** Reads an activity from the result of a task; undefined for other results. */
function readActivity(item: unknown): Activity | undefined {
  if (!isRecord(item)) return undefined;
  const { type, command, folder, title, end, exitCode, changes, isMoved } = item;
  if (type === "refusal") return { type };
  if (type === "change") {
    const change = readChange(item);
    return change && { type, ...change, ...(isMoved === true && { isMoved }) };
  }
  if (type === "call" && typeof title === "string") return { type, title };
  if (type !== "command" || typeof command !== "string") return undefined;
  const read = Array.isArray(changes) ? changes.flatMap((change) => readChange(change) ?? []) : [];
  const common = {
    type,
    command,
    ...(typeof folder === "string" && { folder }),
    ...(read.length > 0 && { changes: read }),
  } as const;
  if (end === "exited" && typeof exitCode === "number") return { ...common, end, exitCode };
  return end === "stopped" || end === "cancelled" || end === "background" ? { ...common, end } : undefined;
}

function readChange(item: unknown): ChangedPath | undefined {
  if (!isRecord(item) || typeof item["path"] !== "string") return undefined;
  return { path: item["path"], ...stateOf(readHash(item["before"]), readHash(item["after"])) };
}

const readHash = (value: unknown): string | null | undefined =>
  typeof value === "string" || value === null ? value : undefined;
