import { errorFields } from "../base/error-fields.ts";
import { messageOf } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import type { Message, SessionInfo } from "../message/message.ts";
import type { SessionWriter } from "../storage/session-store.ts";
import { startsTurn } from "../message/starts-turn.ts";
import { addAnswer } from "../conversation/command-messages.ts";
import { endInterrupted, endLostJobs, type FindTask } from "./interrupted-turn.ts";
import type { Project } from "../conversation/project.ts";
import type { SessionDiff } from "../conversation/session-diff.ts";
import { Transcript } from "../conversation/transcript.ts";
import { LazyUndo } from "./lazy-undo.ts";
import { addMergedFolders } from "../workspace/worktrees/worktree-path.ts";
import { loadVisible, omitReverted } from "../conversation/visible-messages.ts";

export interface StoredSession {
  info: SessionInfo;
  project: Project;
  writer: SessionWriter;
  diff: SessionDiff;
  messagesFromNewest: () => AsyncIterable<Message>;
  taskOf: FindTask;
}

export interface RecoveredSession {
  info: SessionInfo;
  /** The messages that the model sees, oldest first. */
  messages: Message[];
  /** Notice for the user about interrupted work. */
  notice: string | undefined;
}

/**
 * Recovers a stored session before it is opened: completes an interrupted undo, ends an interrupted turn and jobs of an
 * earlier process, and updates the session's diff. `wasLeft`: its process did not close it.
 */
export async function recoverSession(
  stored: StoredSession,
  wasLeft: boolean,
  log: Log,
): Promise<RecoveredSession> {
  const { writer, diff, messagesFromNewest } = stored;
  let { info } = stored;
  const save = async (change: Partial<SessionInfo>) => {
    info = { ...info, ...change };
    writer.saveInfo(info);
  };
  if (info.time.compacting !== undefined) {
    const { compacting: _, ...time } = info.time;
    await save({ time });
  }
  const messages = await loadVisible(omitReverted(messagesFromNewest(), info.revert));
  const transcript = new Transcript({ writer, emit: quiet, messages, newest: info.revert?.through });
  const undo = new LazyUndo({
    ...stored,
    workspace: addMergedFolders(stored.project.workspace, info),
    transcript,
    revert: () => info.revert,
    save,
    onShown: async () => {},
  });
  const undone = info.revert === undefined ? undefined : await recoverUndo(undo, transcript, log);
  const dropped = await recoverDrop(undo, transcript, log);
  const interrupted = await endInterrupted(transcript, wasLeft, stored.taskOf);
  const lost = await endLostJobs(transcript, stored);
  if (info.summary !== undefined && !diff.isStored) {
    const summary = await diff.rebuild(omitReverted(messagesFromNewest(), info.revert));
    if (summary !== undefined) await save({ summary });
  } else if (wasLeft || lost !== undefined) {
    await diff.noteStored(omitReverted(messagesFromNewest(), info.revert), startsTurn);
    const summary = await diff.save();
    if (summary !== undefined) await save({ summary });
  }
  const notices = [undone, dropped, interrupted, lost].filter((notice) => notice !== undefined);
  const notice = notices.length === 0 ? undefined : notices.join("\n\n");
  return { info, messages: [...transcript.messages], notice };
}

const quiet = () => {};

/** Completes an interrupted undo. A disk error must not prevent opening the session: the next command retries. */
async function recoverUndo(undo: LazyUndo, transcript: Transcript, log: Log): Promise<string | undefined> {
  try {
    const report = await (await undo.load()).recover();
    await answerLast(transcript, report);
    return report;
  } catch (error) {
    log.error("undo recovery failed", errorFields(error));
    return `An interrupted undo could not be completed: ${messageOf(error)} Send /undo to try again.`;
  }
}

/** As {@link recoverUndo}, for a drop. */
async function recoverDrop(undo: LazyUndo, transcript: Transcript, log: Log): Promise<string | undefined> {
  const isOpen = ({ parts }: Message) => parts.some((part) => part.type === "drop" && !part.isDone);
  if (!transcript.messages.some(isOpen)) return undefined;
  try {
    const report = await (await undo.loadReview()).recover();
    await answerLast(transcript, report);
    return report;
  } catch (error) {
    log.error("drop recovery failed", errorFields(error));
    return `An interrupted drop could not be completed: ${messageOf(error)} Open the session again to try again.`;
  }
}

async function answerLast(transcript: Transcript, report: string | undefined): Promise<void> {
  const question = transcript.messages.findLast(({ info }) => info.role === "user")?.info;
  if (report !== undefined && question?.role === "user") await addAnswer(transcript, question, report);
}
