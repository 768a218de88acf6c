import type { SessionId } from "../message/ids.ts";
import type { Message, Worktree } from "../message/message.ts";
import {
  createLostEnd,
  endJob,
  type FileChange,
  hasRunningJob,
  isFinished,
  type ToolPart,
} from "../message/part.ts";
import { isCommandMessage } from "../conversation/checkpoints.ts";
import { listCarriedJobs, loadCarriedCalls, type StoredCall } from "../context/carried-jobs.ts";
import type { SessionDiff } from "../conversation/session-diff.ts";
import type { Transcript } from "../conversation/transcript.ts";
import type { PartlyTrackedCommand } from "../tool/tool.ts";
import { formatTaskNotes } from "../tool/task/task-report.ts";

/** A task that the end of the program cut off, with what it changed. */
export interface InterruptedTask {
  readonly id: SessionId;
  readonly agent: string;
  readonly changes: FileChange[];
  readonly notUndone: readonly PartlyTrackedCommand[];
  /** Paths of edits that may or may not be done. */
  readonly interruptedEdits: readonly string[];
  /** Where it worked, if not in the session's folder. */
  readonly worktree: Worktree | undefined;
}

/** Finds the child session of a task call, with what it changed for this call. */
export type FindTask = (callId: string) => Promise<InterruptedTask | undefined>;

/**
 * Ends an interrupted turn: open calls fail as interrupted, unfinished messages end.
 * Returns a notice for the user; undefined when nothing was interrupted. `wasLeft`: the process did not close the
 * session.
 */
export async function endInterrupted(
  transcript: Transcript,
  wasLeft: boolean,
  taskOf: FindTask,
): Promise<string | undefined> {
  const last = transcript.messages.at(-1);
  if (wasLeft && last?.info.role === "user" && (isCommandMessage(last) || isDrop(last)))
    return unansweredCommand;
  const open = transcript.messages.filter(isOpen);
  const wasInterrupted = open.length > 0 || (wasLeft && endsInTurn(transcript.messages));
  const calls: string[] = [];
  for (const message of open) {
    calls.push(...(await failOpenCalls(transcript, message, taskOf)));
    if (message.info.role !== "assistant") continue;
    const error = {
      code: "cancelled",
      message: "The program ended while this was being written.",
      retryable: false,
    } as const;
    await transcript.complete({ ...message.info, finish: "error", error });
  }
  if (!wasInterrupted) return undefined;
  const what = calls.length > 0 ? ` What was running: ${calls.join(", ")}.` : "";
  return `The last turn was interrupted before it ended.${what} Send a message to continue.`;
}

/** A command's question is stored before it runs, its answer after. */
const unansweredCommand =
  "The program ended before your last command was answered. Send it again if it was not done; /checkpoints shows what can be undone or redone.";

function isDrop({ parts }: Message): boolean {
  return parts.some(({ type }) => type === "drop");
}

function isOpen(message: Message): boolean {
  return message.info.role === "assistant" && message.info.time.completed === undefined;
}

/**
 * True when the turn was not finished: an unanswered message, results without a next step, or an earlier
 * interruption.
 */
function endsInTurn(messages: readonly Message[]): boolean {
  const last = messages.at(-1)?.info;
  if (last?.role !== "assistant") return last !== undefined;
  return last.finish === "tool-calls" || last.error?.code === "cancelled";
}

interface LostJobsDeps {
  readonly taskOf: FindTask;
  readonly messagesFromNewest: () => AsyncIterable<Message>;
  readonly diff: Pick<SessionDiff, "noteLate">;
}

/**
 * Ends the jobs that ended with an earlier process; a task gets its changes so far. Returns a notice for the user;
 * undefined if there were none.
 */
export async function endLostJobs(
  transcript: Transcript,
  { taskOf, messagesFromNewest, diff }: LostJobsDeps,
): Promise<string | undefined> {
  const carried = await loadCarriedCalls(listCarriedJobs(transcript.messages), messagesFromNewest);
  const visible = transcript.messages.flatMap(({ info, parts }) =>
    parts.flatMap((part) => (part.type === "tool" ? [{ messageId: info.id, part }] : [])),
  );
  const names: string[] = [];
  for (const { messageId, part } of uniqueCalls([...carried, ...visible])) {
    if (!hasRunningJob(part.state)) continue;
    names.push(part.title ?? part.tool);
    const task = await findInterruptedTask(part, taskOf);
    const ended = task === undefined ? endJob(part, createLostEnd(part)) : endLostTask(part, task);
    if (task !== undefined) diff.noteLate(messageId, task.changes);
    await transcript.amendParts(messageId, [ended]);
  }
  return names.length === 0
    ? undefined
    : `Work in the background has ended with the program: ${names.join(", ")}.`;
}

/** A compaction may leave a call visible whose job it carries. */
function uniqueCalls(calls: readonly StoredCall[]): StoredCall[] {
  return [...new Map(calls.map((call) => [call.part.callId, call])).values()];
}

async function findInterruptedTask({ tool, callId }: ToolPart, taskOf: FindTask) {
  return tool === "task" ? taskOf(callId) : undefined;
}

/** Returns the call of a background task with its end and its changes so far. */
function endLostTask(part: ToolPart, task: InterruptedTask): ToolPart {
  const { notes, changes, metadata } = describeInterruptedTask(task);
  const output = `${lostTaskText}\n\n${notes}`;
  const ended = endJob(part, { ...createLostEnd(part), output });
  if (ended.state.status !== "completed") return ended;
  return { ...ended, state: { ...ended.state, changes, metadata: { ...ended.state.metadata, ...metadata } } };
}

const lostTaskText =
  "The task was cut off before it was done, and there is no report. It can be continued with its task_id.";

/** Builds the result of an interrupted call; for a task, with its session and its changes so far. */
async function createInterruptedResult(part: ToolPart, taskOf: FindTask) {
  const error = "[Tool execution was interrupted]";
  const task = await findInterruptedTask(part, taskOf);
  if (task === undefined) return { error };
  const { notes, changes, metadata } = describeInterruptedTask(task);
  return { error: `${error}\n\n${notes}`, changes, metadata };
}

function describeInterruptedTask(task: InterruptedTask) {
  const { id, agent, changes, notUndone, interruptedEdits, worktree } = task;
  const place = worktree && { branch: worktree.branch, root: worktree.root };
  return {
    notes: formatTaskNotes({ taskId: id, agent, state: "interrupted", worktree: place }),
    changes,
    metadata: {
      sessionId: id,
      agent,
      state: "interrupted",
      notUndone,
      interruptedEdits,
      ...(place && { worktree: place }),
    },
  };
}

async function failOpenCalls(transcript: Transcript, message: Message, taskOf: FindTask): Promise<string[]> {
  const names: string[] = [];
  for (const part of message.parts) {
    if (part.type !== "tool" || isFinished(part.state)) continue;
    names.push(part.title ?? part.tool);
    transcript.putPart(message.info.id, {
      ...part,
      state: {
        status: "error",
        input: part.state.input,
        reason: "interrupted",
        ...(await createInterruptedResult(part, taskOf)),
      },
    });
  }
  return names;
}
