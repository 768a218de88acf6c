import { z } from "zod";
import { messageOf } from "../../base/errors.ts";
import type { FileChange } from "../../message/part.ts";
import type { Worktree } from "../../message/message.ts";
import { formatPath } from "../../workspace/paths.ts";
import { type MergedFile, type MergePlan, planMerge } from "../../workspace/worktrees/merge-plan.ts";
import type { Worktrees } from "../../workspace/worktrees/worktrees.ts";
import { compareTexts } from "../diff.ts";
import { type FileWrite, toFileChange, writeBatch } from "../patch/file-batch.ts";
import { mergeName } from "./merge-name.ts";
import { decodeText, lockFiles, StaleFailure } from "../text-file.ts";
import {
  defineTool,
  type PreparedCall,
  type Tool,
  type ToolContext,
  ToolFailure,
  type ToolResult,
} from "../tool.ts";

const inputSchema = z.object({
  action: z.enum(["merge", "drop"]),
  branch: z.string(),
});
type Input = z.infer<typeof inputSchema>;

export interface MergeTarget {
  readonly worktree: Worktree;
  /** Commit of the state that was merged last, or from which the worktree started. */
  readonly base: string;
  /** The last merge left conflicts or files that were not merged. */
  readonly isUnresolved: boolean;
  /** Title of the task that worked in it; undefined for the session's own worktree. */
  readonly task?: string;
  /** The task works in it now. */
  readonly isRunning: boolean;
}

/** Creates the tool for one worktree. */
export function mergeTool(worktrees: Worktrees, target: MergeTarget): Tool {
  return defineTool<Input>({
    name: mergeName,
    description: "Merges a worktree.",
    input: inputSchema,
    kind: "edit",
    concurrency: "exclusive",
    prepare: async ({ action }, context) => {
      const plan = await explain(() =>
        planMerge(worktrees, target.worktree, target.base, context.workspace.files),
      );
      return action === "merge"
        ? prepareMerge(worktrees, target, plan, context)
        : prepareDrop(worktrees, target, plan);
    },
  });
}

function prepareMerge(
  worktrees: Worktrees,
  { worktree }: MergeTarget,
  plan: MergePlan,
  context: ToolContext,
): PreparedCall {
  const { main, branch } = worktree;
  const { files, skipped } = plan;
  if (files.length + skipped.length === 0)
    throw new ToolFailure(`Nothing to merge: ${branch} has no changes that ${main} lacks.`);
  const conflicts = files.filter(({ hasConflict }) => hasConflict);
  const notes = [
    `Merge ${countFiles(files.length)} of ${branch} into ${main}.`,
    ...(conflicts.length === 0 ? [] : [`With conflict markers: ${listNames(conflicts, main)}.`]),
    ...skipped.map(({ path, reason }) => `Not merged: ${formatPath(main, path)}: ${reason}.`),
  ];
  return {
    title: `Merge ${branch}`,
    locations: files.map(({ path }) => ({ path })),
    preview: { diffs: files.flatMap(toDiff), text: notes.join("\n") },
    permissions: [
      {
        permission: mergeName,
        subjects: [{ text: branch, confirm: "only you can decide what changes the main checkout" }],
        always: [],
      },
    ],
    run: async ({ signal }) => {
      const { changes } = await lockAndWrite(context, files, signal);
      await explain(() => worktrees.keep(worktree, plan.state));
      return {
        status: "completed",
        output: describeMerge(worktree, plan, conflicts),
        changes,
        metadata: { branch, state: plan.state, unresolved: conflicts.length + skipped.length },
      };
    },
  };
}

async function lockAndWrite(context: ToolContext, files: readonly MergedFile[], signal: AbortSignal) {
  try {
    return await lockFiles(
      context,
      files.map(({ path }) => path),
      async () => {
        signal.throwIfAborted();
        const done = await writeBatch(context.workspace, files.map(toWrite));
        if (done.outcome === "written") return { changes: done.writes.map(toMergedChange) };
        throw new ToolFailure(`${done.error.message} Nothing was merged.`, { cause: done.error });
      },
    );
  } catch (error) {
    if (!(error instanceof StaleFailure)) throw error;
    throw new ToolFailure(`${error.path} was changed meanwhile. Nothing was merged. Send /merge again.`, {
      cause: error,
    });
  }
}

function prepareDrop(worktrees: Worktrees, target: MergeTarget, { files, skipped }: MergePlan): PreparedCall {
  const { worktree, base, isUnresolved } = target;
  const { branch, main } = worktree;
  const paths = [...files, ...skipped];
  if (paths.length === 0 && !isUnresolved)
    throw new ToolFailure(`Nothing to drop: ${branch} has no changes that ${main} lacks.`);
  return {
    title: `Drop the changes of ${branch}`,
    locations: [],
    preview: {
      diffs: files.flatMap(toDiff),
      text: `Discard ${describeDropped(target, paths)}. This cannot be undone.`,
    },
    permissions: [
      {
        permission: mergeName,
        subjects: [{ text: `drop ${branch}`, confirm: "only you can decide what is discarded" }],
        always: [],
      },
    ],
    run: async (): Promise<ToolResult> => {
      await explain(() => worktrees.reset(worktree, base));
      return {
        status: "completed",
        output: `Dropped ${describeDropped(target, paths)}. ${main} was not changed.`,
        metadata: { branch, state: base, unresolved: 0 },
      };
    },
  };
}

function describeDropped(
  { worktree: { branch, main } }: MergeTarget,
  paths: readonly { readonly path: string }[],
): string {
  return paths.length === 0
    ? `what the last merge of ${branch} left out`
    : `the changes of ${branch}: ${listNames(paths, main)}`;
}

function describeMerge(
  { branch, main }: Worktree,
  { files, skipped }: MergePlan,
  conflicts: readonly MergedFile[],
) {
  return [
    `Merged ${countFiles(files.length)} of ${branch} into ${main}: ${listNames(files, main)}.`,
    ...(conflicts.length === 0
      ? []
      : [
          `Conflicts in ${listNames(conflicts, main)}: both places changed the same lines. Both texts are in the files, between <<<<<<< and >>>>>>>; keep what is right and remove the markers.`,
        ]),
    ...skipped.map(({ path, reason }) => `Not merged: ${formatPath(main, path)}: ${reason}.`),
    "/undo takes the merge back.",
  ].join("\n\n");
}

function toDiff({ path, before, after }: MergedFile) {
  const [oldText, newText] = [before, after].map((content) => content && decodeText(content.bytes)?.text);
  if (oldText === undefined || newText === undefined) return [];
  return [{ path, oldText, newText: newText ?? "" }];
}

function toWrite({ path, before, after }: MergedFile): FileWrite {
  const texts = [before, after].map((content) => content && (decodeText(content.bytes)?.text ?? ""));
  const { additions, deletions } = compareTexts(texts[0] ?? null, texts[1] ?? "");
  return { path, before, after, additions, deletions };
}

function toMergedChange(write: FileWrite): FileChange {
  const mode = (write.before ?? write.after)?.mode;
  return { ...toFileChange(write), ...(mode === 0o755 && { mode }) };
}

/** Files that one message names. */
const namedFiles = 20;

function listNames(files: readonly { readonly path: string }[], main: string): string {
  const named = files.slice(0, namedFiles).map(({ path }) => formatPath(main, path));
  const more = files.length - named.length;
  return `${named.join(", ")}${more > 0 ? ` and ${more} more` : ""}`;
}

const countFiles = (count: number): string => (count === 1 ? "1 file" : `${count} files`);

/** Runs a task of git. Turns its errors into a {@link ToolFailure}. */
async function explain<T>(task: () => Promise<T>): Promise<T> {
  try {
    return await task();
  } catch (error) {
    throw new ToolFailure(`The worktree could not be read: ${messageOf(error)}`, { cause: error });
  }
}
