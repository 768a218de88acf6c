import type { SessionId } from "../message/ids.ts";
import type { Message } from "../message/message.ts";
import { type FileChange, isFinished, type ToolPart } from "../message/part.ts";
import { isExchange } from "../conversation/checkpoints.ts";
import type { Transcript } from "../conversation/transcript.ts";

/** The child session of a task call, with what it changed for this call. */
export type FindTask = (
  callId: string,
) => Promise<{ id: SessionId; agent: string; changes: FileChange[] } | undefined>;

/**
 * Brings a session whose process ended in the middle of a turn into order: calls that were open fail as
 * interrupted, messages that were being written end. Answers what was cut off, for the person. `wasLeft` says that
 * the process did not end the session itself.
 */
export async function endInterrupted(
  transcript: Transcript,
  wasLeft: boolean,
  taskOf: FindTask,
): Promise<string | undefined> {
  const last = transcript.messages.at(-1);
  if (wasLeft && last?.info.role === "user" && isExchange(last)) return unansweredCommand;
  const cut = transcript.messages.filter(isOpen);
  const isCut = cut.length > 0 || (wasLeft && endsInTurn(transcript.messages));
  const calls: string[] = [];
  for (const message of cut) {
    calls.push(...(await failOpenCalls(transcript, message, taskOf)));
    if (message.info.role !== "assistant") continue;
    const error = {
      code: "cancelled",
      message: "The program ended while this was being written.",
      retryable: false,
    } as const;
    await transcript.complete({ ...message.info, finish: "error", error });
  }
  if (!isCut) return undefined;
  const what = calls.length > 0 ? ` What was running: ${calls.join(", ")}.` : "";
  return `The last turn was interrupted before it ended.${what} Send a message to go on.`;
}

/** A command puts its question into the session before it begins, and its answer when it has ended. */
const unansweredCommand =
  "The program ended before your last command was answered. Send it again if it was not done; /checkpoints shows what can be undone or brought again.";

function isOpen(message: Message): boolean {
  return message.info.role === "assistant" && message.info.time.completed === undefined;
}

/** Whether more was to come: an answer, the step after the last calls, or the rest of what was cut off before. */
function endsInTurn(messages: readonly Message[]): boolean {
  const last = messages.at(-1)?.info;
  if (last?.role !== "assistant") return last !== undefined;
  return last.finish === "tool-calls" || last.error?.code === "cancelled";
}

/** What is known of a call that was cut off: of a task, its session and what it changed until then. */
async function interruptedWork({ tool, callId }: ToolPart, taskOf: FindTask) {
  const error = "[Tool execution was interrupted]";
  const task = tool === "task" ? await taskOf(callId) : undefined;
  if (task === undefined) return { error };
  const { id, agent, changes } = task;
  const block = `<task_metadata>\ntask_id: ${id}\nagent: ${agent}\nstate: interrupted\n</task_metadata>`;
  return { error: `${error}\n\n${block}`, changes, metadata: { sessionId: id, agent, state: "interrupted" } };
}

async function failOpenCalls(transcript: Transcript, message: Message, taskOf: FindTask): Promise<string[]> {
  const names: string[] = [];
  for (const part of message.parts) {
    if (part.type !== "tool" || isFinished(part.state)) continue;
    names.push(part.title ?? part.tool);
    await transcript.putPart(message.info.id, {
      ...part,
      state: {
        status: "error",
        input: part.state.input,
        reason: "interrupted",
        ...(await interruptedWork(part, taskOf)),
      },
    });
  }
  return names;
}
