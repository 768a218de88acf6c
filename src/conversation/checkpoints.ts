import { z } from "zod";
import type { MessageId } from "../message/ids.ts";
import type { Message } from "../message/message.ts";
import type { FileChange, Part, ToolPart } from "../message/part.ts";
import type { PartlyTrackedCommand } from "../tool/tool.ts";
import { startsTurn } from "../message/starts-turn.ts";
import { fallbackTitle } from "../message/title.ts";

/** A turn that can be undone: the user's message and everything up to the next one. */
export interface Checkpoint {
  /** Id of the user's message. */
  readonly id: MessageId;
  /** Milliseconds since 1970. */
  readonly created: number;
  readonly words: string;
  /** Oldest first, without command questions and answers. */
  readonly messages: readonly Message[];
}

/** A change of one file's content; `before` and `after` as in {@link FileChange}. */
export interface FileStep extends FileMetadata {
  readonly path: string;
  readonly before: string | null | undefined;
  readonly after: string | null | undefined;
  /** Line counts, if they were counted for this file alone. */
  readonly counts?: { readonly additions: number; readonly deletions: number };
}

/**
 * Metadata of a file before and after changes.
 * - `mode`: permission bits before them, or of a created file; `newMode`: those after them, if different.
 * - `wasLink`, `isLink`: the content before, or after them, is the target of a symbolic link.
 */
export type FileMetadata = Pick<FileChange, "mode" | "newMode" | "wasLink" | "isLink">;

/** Length of a checkpoint's name, the end of its message id. It is random, so names differ within a session. */
const nameLength = 8;

/** Yields the turns of a session, newest first, read on demand. */
export async function* readCheckpoints(newestFirst: AsyncIterable<Message>): AsyncGenerator<Checkpoint> {
  let later: Message[] = [];
  for await (const message of newestFirst) {
    if (isCommandMessage(message)) continue;
    later.push(message);
    if (!startsTurn(message)) continue;
    const { id, time } = message.info;
    yield { id, created: time.created, words: firstWords(message), messages: later.reverse() };
    later = [];
  }
}

/** Returns the name of a checkpoint. */
export function nameOf({ id }: Pick<Checkpoint, "id">): string {
  return id.slice(-nameLength);
}

export function hasName({ id }: Pick<Checkpoint, "id">, name: string): boolean {
  return id === name || (name.length >= nameLength && id.endsWith(name));
}

/** Returns the file changes of the messages' calls and drops, in the order in which they happened. */
export function changesOf(messages: readonly Message[]): FileChange[] {
  return messages.flatMap((message) => [...changesByCalls(message), ...changesByDrops(message)]);
}

/** Returns the file changes of a message's calls, in the order in which they happened. */
export function changesByCalls(message: Message): FileChange[] {
  return callsOf(message)
    .sort((one, other) => startOf(one) - startOf(other))
    .flatMap(({ state }) => ("changes" in state ? (state.changes ?? []) : []));
}

/** Returns the file changes by which the user dropped changes of the agent. */
export function changesByDrops({ parts }: Message): FileChange[] {
  return parts.flatMap((part) => (part.type === "drop" ? part.changes : []));
}

/** Splits changes by file: a move removes one file and creates another. */
export function fileSteps(changes: readonly FileChange[]): FileStep[] {
  return changes.flatMap((change): FileStep[] => {
    const { path, before, after, additions, deletions, fromPath } = change;
    const mode = change.mode !== undefined && { mode: change.mode };
    if (change.operation !== "move" || fromPath === undefined)
      return [{ path, before, after, counts: { additions, deletions }, ...pickMetadata(change) }];
    return [
      { path: fromPath, before, after: null, ...mode },
      { path, before: null, after, ...mode },
    ];
  });
}

/** Returns the metadata before the first step and after the last one. */
export function mergeMetadata(steps: readonly FileStep[]): FileMetadata {
  const mode = steps.find((step) => step.mode !== undefined)?.mode;
  const newMode = steps.findLast((step) => step.newMode !== undefined)?.newMode;
  return pickMetadata({
    mode,
    newMode: newMode === mode ? undefined : newMode,
    wasLink: steps[0]?.wasLink,
    isLink: steps.at(-1)?.isLink,
  });
}

function pickMetadata({ mode, newMode, wasLink, isLink }: FileMetadata): FileMetadata {
  return {
    ...(mode !== undefined && { mode }),
    ...(newMode !== undefined && { newMode }),
    ...(wasLink && { wasLink }),
    ...(isLink && { isLink }),
  };
}

const reasonsSchema = z.object({ notUndone: z.array(z.string()) });
const taskSchema = z.object({
  notUndone: z.array(z.object({ command: z.string(), reasons: z.array(z.string()) })).default([]),
  interruptedEdits: z.array(z.string()).default([]),
});

/** Returns the commands whose changes are not, or not all, recorded, with those of tasks. */
export function partlyTrackedCommandsOf(messages: readonly Message[]): PartlyTrackedCommand[] {
  return messages.flatMap(callsOf).flatMap(findPartlyTracked);
}

/** Returns what a call did that is not, or not all, recorded. A call that has not ended counts as interrupted. */
export function findPartlyTracked(call: ToolPart): readonly PartlyTrackedCommand[] {
  const { state, tool, title } = call;
  const metadata = "metadata" in state ? state.metadata : undefined;
  if (tool === "task") return taskSchema.safeParse(metadata).data?.notUndone ?? [];
  if (tool !== "bash" || !hasRun(call)) return [];
  const command = title ?? tool;
  if (isInterrupted(call))
    return [{ command, reasons: ["the program ended while it ran, so its changes are unknown"] }];
  const stored = reasonsSchema.safeParse(metadata);
  return stored.success ? [{ command, reasons: stored.data.notUndone }] : [];
}

/** Returns the paths of edits that the end of the program interrupted; they may or may not be done. */
export function interruptedEditsOf(messages: readonly Message[]): string[] {
  return messages.flatMap(callsOf).flatMap((call) => {
    const { kind, state, tool, locations = [] } = call;
    if (tool === "task" && "metadata" in state)
      return taskSchema.safeParse(state.metadata).data?.interruptedEdits ?? [];
    const isEdit = kind === "edit" || kind === "delete" || kind === "move";
    return isEdit && isInterrupted(call) ? locations.map(({ path }) => path) : [];
  });
}

/** Whether the program ended while the call ran. */
function isInterrupted({ state }: ToolPart): boolean {
  return state.status === "running" || (state.status === "error" && state.reason === "interrupted");
}

/** True for a command's question or answer, which the model never sees. */
export function isCommandMessage({ parts }: Message): boolean {
  return parts.length > 0 && parts.every(isOfCommand);
}

function isOfCommand(part: Part): boolean {
  return part.type === "changes" || (part.type === "text" && part.ignored === true);
}

/** Returns the first words of a user message. */
export function firstWords({ parts }: Message): string {
  const texts = parts.map((part) => (part.type === "text" && part.synthetic !== true ? part.text : ""));
  const text = texts.join(" ").trim();
  return text === "" ? "(attachment)" : fallbackTitle(text);
}

function callsOf({ parts }: Message): ToolPart[] {
  return parts.filter((part) => part.type === "tool");
}

/** Parallel calls are stored in the order of the model's answer, not in the order in which they ran. */
function startOf({ state }: ToolPart): number {
  return "time" in state ? (state.time?.start ?? 0) : 0;
}

/** A call that was not allowed ended at its start time. An interrupted call may have run. */
function hasRun({ state }: ToolPart): boolean {
  if (state.status !== "error") return state.status === "completed" || state.status === "running";
  return state.time === undefined || state.time.end !== state.time.start;
}
