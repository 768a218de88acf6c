import { titleOfObject, titleOfPath } from "../../base/text/call-titles.ts";
import { sha256 } from "../../base/text/hash.ts";
import type { FileChange, Location } from "../../message/part.ts";
import type { PermissionRequest } from "../../permission/rule.ts";
import type { ResolvedPath } from "../../workspace/paths.ts";
import { compareTexts } from "../diff.ts";
import type { Comparison } from "../diff.ts";
import { toFileChange, writeBatch } from "./file-batch.ts";
import type { FileWrite } from "./file-batch.ts";
import { pathPermissions, titleOf } from "../paths.ts";
import { changedNote, decodeText, lockFiles } from "../text-file.ts";
import type { TextFile, Unseen } from "../text-file.ts";
import { ToolFailure } from "../tool.ts";
import type { PreparedCall, RunContext, ToolContext, ToolResult } from "../tool.ts";

/** Planned change of one file. A moved file is written to `to` and removed from `from`. */
export interface FilePlan {
  readonly operation: FileChange["operation"];
  readonly from?: ResolvedPath;
  readonly to?: ResolvedPath;
  readonly before?: TextFile & { readonly mode: number };
  /** Undefined if the file is deleted. */
  readonly after?: { readonly text: string; readonly bytes: Buffer };
  readonly comparison: Comparison;
  /** Hunks, from 1, that did not match exactly. */
  readonly tolerated: readonly number[];
  readonly unseen?: Unseen | undefined;
}

/** The texts of a call that changes several files. */
export interface PlanTexts {
  readonly title: string;
  /** Describes the changes for the model. */
  readonly describe: (results: readonly PlanResult[]) => string;
}

/** Prepares a call that makes all changes or none. Each path occurs in one plan only. */
export function preparePlans(
  context: ToolContext,
  plans: readonly FilePlan[],
  texts: PlanTexts,
): PreparedCall {
  return {
    title: texts.title,
    locations: plans.map(locationOf),
    preview: { diffs: plans.map(diffOf) },
    permissions: plans.flatMap((plan) => createPermissions(context, plan)),
    run: (run) => runPlans(context, plans, texts, run),
  };
}

/** Real paths that the plan touches. */
export function pathsOf({ from, to }: Pick<FilePlan, "from" | "to">): string[] {
  return [...new Set([from, to].flatMap((resolved) => resolved?.path ?? []))];
}

const namedFiles = 3;

/** Names what is done to the first files. */
export function titleOfPlans(context: ToolContext, plans: readonly FilePlan[]): string {
  const [only] = plans;
  if (plans.length === 1 && only !== undefined) return titleOfPlan(context, only);
  const names = plans.slice(0, namedFiles).map((plan) => nameOf(context, plan));
  const more = plans.length - names.length;
  return titleOfObject("Edit", `${names.join(", ")}${more > 0 ? ` and ${more} more` : ""}`);
}

const titleVerbs = { add: "Write", update: "Edit", move: "Move", delete: "Delete" } as const;

function titleOfPlan(context: ToolContext, { operation, from, to }: FilePlan): string {
  const [old, fresh] = [from, to].map((resolved) => (resolved ? titleOf(context, resolved) : ""));
  if (operation === "move") return titleOfObject(titleVerbs.move, `${old} → ${fresh}`);
  return titleOfPath(titleVerbs[operation], fresh || old || "", operation === "add" ? "new" : "");
}

function nameOf(context: ToolContext, { operation, from, to }: FilePlan): string {
  const [old, fresh] = [from, to].map((resolved) => (resolved ? titleOf(context, resolved) : ""));
  if (operation === "move") return `${old} → ${fresh}`;
  return operation === "delete" ? `${old} (deleted)` : (fresh ?? "");
}

function locationOf(plan: FilePlan): Location {
  const path = targetOf(plan);
  return plan.after === undefined ? { path } : { path, line: plan.comparison.firstLine };
}

function diffOf(plan: FilePlan) {
  const { before, after, operation } = plan;
  return {
    path: targetOf(plan),
    oldText: before?.text ?? null,
    newText: after?.text ?? "",
    ...(operation === "delete" && { isDeleted: true }),
  };
}

function targetOf({ from, to }: FilePlan): string {
  const resolved = to ?? from;
  if (resolved === undefined) throw new Error("a plan without a path");
  return resolved.path;
}

function createPermissions(context: ToolContext, { from, to, unseen }: FilePlan): PermissionRequest[] {
  const paths = from === to ? [from] : [from, to];
  const reading = from === undefined || unseen === undefined ? [] : pathPermissions(context, from, "read");
  return [
    ...paths.flatMap((resolved) => (resolved ? pathPermissions(context, resolved, "edit") : [])),
    // A match reveals the content of the file.
    ...reading.filter(({ permission }) => permission === "read"),
  ];
}

async function runPlans(
  context: ToolContext,
  plans: readonly FilePlan[],
  { describe }: PlanTexts,
  { signal }: RunContext,
): Promise<ToolResult> {
  const done = await lockFiles(context, plans.flatMap(pathsOf), async () => {
    signal.throwIfAborted();
    return writeBatch(context.workspace, plans.flatMap(createWrites));
  });
  if (done.outcome === "failed") return createFailure(done.error, done.left);
  const results = plans.map((plan) => createResult(plan, done.writes));
  for (const { plan, change } of results)
    if (change.after) context.seen.setChanged(change.path, change.after, plan.before);
  return {
    status: "completed",
    output: describe(results),
    changes: results.map(({ change }) => change),
  };
}

/** Creates the writes; a moved file is written before it is removed, so that its text is never lost. */
function createWrites({ from, to, before, after, comparison }: FilePlan): FileWrite[] {
  const { additions, deletions } = comparison;
  const old = before ? { bytes: before.bytes, hash: before.hash, mode: before.mode } : null;
  const fresh = after ? { bytes: after.bytes, hash: sha256(after.bytes) } : null;
  const counts = { additions, deletions };
  if (from === to || from === undefined || to === undefined)
    return pathsOf({ from, to }).map((path) => ({ path, before: old, after: fresh, ...counts }));
  const moved = fresh && { ...fresh, ...(before && { mode: before.mode }) };
  return [
    { path: to.path, before: null, after: moved, ...counts },
    { path: from.path, before: old, after: null, ...counts },
  ];
}

export interface PlanResult {
  readonly plan: FilePlan;
  readonly change: FileChange;
  /** The editor changed the text while saving. */
  readonly isFormatted: boolean;
}

function createResult(plan: FilePlan, writes: readonly FileWrite[]): PlanResult {
  const { operation, from, before } = plan;
  const path = targetOf(plan);
  const after = writes.find((write) => write.path === path)?.after ?? null;
  const isFormatted = after !== null && plan.after !== undefined && !after.bytes.equals(plan.after.bytes);
  const { additions, deletions } = isFormatted
    ? compareTexts(before?.text ?? null, decodeText(after.bytes)?.text ?? "")
    : plan.comparison;
  const change: FileChange = {
    path,
    operation,
    ...(operation === "move" && from && { fromPath: from.path }),
    before: before?.hash ?? null,
    after: after?.hash ?? null,
    additions,
    deletions,
    ...getUnusualMode(plan),
  };
  return { plan, change, isFormatted };
}

/** Returns unusual permission bits of a removed file, which undo restores. */
function getUnusualMode({ operation, before }: FilePlan): Pick<FileChange, "mode"> {
  const isGone = operation === "delete" || operation === "move";
  const isUsual = before === undefined || usualModes.has(before.mode);
  return isGone && !isUsual ? { mode: before.mode } : {};
}

/** Permission bits of new files on most systems. */
const usualModes: ReadonlySet<number> = new Set([0o644, 0o664, 0o666]);

function createFailure(error: Error, left: readonly FileWrite[]): ToolResult {
  if (left.length === 0) throw new ToolFailure(`${error.message} ${undone}`, { cause: error });
  const paths = left.map(({ path }) => path).join(", ");
  const remaining = `Earlier changes could not be undone in ${paths}. Read these files before you go on.`;
  return { status: "failed", error: `${error.message} ${remaining}`, changes: left.map(toFileChange) };
}

const undone = "The whole change was undone: all files are as before.";

const verbs: Readonly<Record<FileChange["operation"], string>> = {
  add: "Created",
  update: "Changed",
  delete: "Deleted",
  move: "Moved",
};

/** Describes a change for the model, with the changed lines. */
export function describeResult(context: ToolContext, { plan, change, isFormatted }: PlanResult): string {
  const { operation, from, to, comparison, tolerated } = plan;
  const [old, fresh] = [from, to].map((resolved) => (resolved ? titleOf(context, resolved) : ""));
  const name = operation === "move" ? `${old} to ${fresh}` : fresh || old;
  const notes = [
    ...(tolerated.length === 0 ? [] : [nearlyNote(tolerated)]),
    ...(plan.unseen?.hasChanged === true ? [changedNote] : []),
    ...(isFormatted ? [formattedNote] : []),
  ];
  const head = [
    `${verbs[operation]} ${name} (+${change.additions} -${change.deletions} lines).`,
    ...notes,
  ].join(" ");
  const isShown = comparison.excerpt !== "" && operation !== "delete" && !isFormatted;
  return isShown ? `${head}\n${comparison.excerpt}` : head;
}

const formattedNote =
  "The editor changed the text when it saved it, as its formatter does: read the file before you change it again.";

function nearlyNote(hunks: readonly number[]): string {
  return `The lines of hunk ${hunks.join(", ")} matched only approximately: check the result.`;
}
