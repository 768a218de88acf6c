import { errorFields } from "../base/error-fields.ts";
import { messageOf } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import type { Message, SessionInfo } from "../message/message.ts";
import type { SessionWriter } from "../storage/session-store.ts";
import { beginsTurn } from "../conversation/checkpoints.ts";
import { addAnswer } from "../conversation/command-messages.ts";
import { endInterrupted, type FindTask } from "./interrupted-turn.ts";
import type { Project } from "../conversation/project.ts";
import type { SessionDiff } from "../conversation/session-diff.ts";
import { Transcript } from "../conversation/transcript.ts";
import { Undo } from "./undo.ts";
import { loadVisible, withoutReverted } from "../conversation/visible-messages.ts";

export interface StoredSession {
  info: SessionInfo;
  project: Project;
  writer: SessionWriter;
  diff: SessionDiff;
  messagesFromNewest: () => AsyncIterable<Message>;
  taskOf: FindTask;
}

export interface Recovered {
  info: SessionInfo;
  /** What the model sees, oldest first. */
  messages: Message[];
  /** What was cut off, for the person. */
  notice: string | undefined;
}

/**
 * Brings a stored session into order before it is live: an undo that was cut off is completed, a turn that was cut
 * off ends, the session's diff has all that was changed. `wasLeft` says that its process did not end it itself.
 */
export async function recover(stored: StoredSession, wasLeft: boolean, log: Log): Promise<Recovered> {
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
  const messages = await loadVisible(withoutReverted(messagesFromNewest(), info.revert));
  const transcript = new Transcript({ writer, emit: quiet, messages, newest: info.revert?.through });
  const { workspace } = stored.project;
  const undo = new Undo({
    ...stored,
    workspace,
    transcript,
    revert: () => info.revert,
    save,
    onShown: quiet,
  });
  const undone = await recoverUndo(undo, transcript, log);
  const interrupted = await endInterrupted(transcript, wasLeft, stored.taskOf);
  if (info.summary !== undefined && !diff.isStored) {
    const summary = await diff.rebuild(withoutReverted(messagesFromNewest(), info.revert));
    if (summary !== undefined) await save({ summary });
  } else if (wasLeft) {
    await diff.noteStored(withoutReverted(messagesFromNewest(), info.revert), beginsTurn);
    const summary = await diff.save();
    if (summary !== undefined) await save({ summary });
  }
  const notices = [undone, interrupted].filter((notice) => notice !== undefined);
  const notice = notices.length === 0 ? undefined : notices.join("\n\n");
  return { info, messages: [...transcript.messages], notice };
}

const quiet = async () => {};

/** A disk that does not take it must not keep the session from being opened: the next command tries again. */
async function recoverUndo(undo: Undo, transcript: Transcript, log: Log): Promise<string | undefined> {
  try {
    const report = await undo.recover();
    const question = transcript.messages.findLast(({ info }) => info.role === "user")?.info;
    if (report !== undefined && question?.role === "user") await addAnswer(transcript, question, report);
    return report;
  } catch (error) {
    log.error("an undo that was cut off could not be completed", errorFields(error));
    return `An undo was cut off and could not be completed: ${messageOf(error)} Send /undo to try again.`;
  }
}
