import { newPartId } from "../message/ids.ts";
import type { AssistantInfo, Message, UserInfo } from "../message/message.ts";
import type { ModelRef } from "../message/model-ref.ts";
import type { SubtaskPart } from "../message/part.ts";
import type { CallOutcome } from "../tool-calls/tool-call-record.ts";
import type { ToolRunner } from "../tool-calls/tool-runner.ts";
import type { Transcript } from "../conversation/transcript.ts";
import { noTokens } from "../conversation/turn-result.ts";

/** Returns the tasks that a command put into the message; none once an answer has started. */
export function findQueuedTasks({ info, parts }: Message, messages: readonly Message[]): SubtaskPart[] {
  const tasks = parts.filter((part) => part.type === "subtask");
  if (tasks.length === 0) return tasks;
  const isStarted = messages.some((one) => one.info.role === "assistant" && one.info.parentId === info.id);
  return isStarted ? [] : tasks;
}

/** Runs the tasks concurrently as task calls of one assistant message. Returns the reasons that stopped them. */
export async function runTasks(
  { transcript, runner }: { transcript: Transcript; runner: ToolRunner },
  tasks: readonly SubtaskPart[],
  { question, agent, model }: { question: UserInfo; agent: string; model: ModelRef },
  signal: AbortSignal,
): Promise<NonNullable<CallOutcome["stop"]>[]> {
  const info: AssistantInfo = {
    id: transcript.newMessageId(),
    sessionId: transcript.sessionId,
    role: "assistant",
    parentId: question.id,
    time: { created: Date.now() },
    agent,
    model,
    cost: 0,
    tokens: noTokens,
  };
  transcript.addMessage(info);
  transcript.putPart(info.id, { id: newPartId(), type: "step-start" });
  const running = tasks.map(async ({ description, prompt, agent: subagent_type, command }) => {
    const call = runner.announce(info.id, "task", newPartId());
    const input = { description, prompt, subagent_type, ...(command !== undefined && { command }) };
    return runner.run(info.id, call, { tool: "task", input }, signal);
  });
  const outcomes = await Promise.all(running);
  const changes = outcomes.flatMap((outcome) => outcome.changes);
  if (changes.length > 0) transcript.putPart(info.id, { id: newPartId(), type: "patch", changes });
  const stops = outcomes.flatMap(({ stop }) => stop ?? []);
  const finish = signal.aborted || stops.includes("cancelled") ? "cancelled" : "tool-calls";
  transcript.putPart(info.id, {
    id: newPartId(),
    type: "step-finish",
    reason: finish,
    tokens: noTokens,
    cost: 0,
  });
  await transcript.complete({ ...info, finish });
  return stops;
}
