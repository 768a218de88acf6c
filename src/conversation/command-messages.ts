import { removeControls } from "../base/text/controls.ts";
import { type MessageId, newPartId } from "../message/ids.ts";
import type { AssistantInfo, UserInfo } from "../message/message.ts";
import type { ChangesPart, Part } from "../message/part.ts";
import type { Transcript } from "./transcript.ts";
import { noTokens } from "./turn-result.ts";

/** Adds a command as the user typed it; the model does not see it. */
export async function addQuestion(transcript: Transcript, question: UserInfo, text: string): Promise<void> {
  transcript.addMessage(question);
  transcript.putPart(question.id, ignoredText(text));
  await transcript.seal(question.id);
}

/** Adds a command's answer. It may contain text from a server. `changes` are shown before it. */
export async function addAnswer(
  transcript: Transcript,
  question: UserInfo,
  text: string,
  changes?: ChangesPart,
): Promise<void> {
  const info = createInfo(transcript, question);
  transcript.addMessage(info);
  if (changes !== undefined) transcript.putPart(info.id, changes);
  transcript.putPart(info.id, ignoredText(removeControls(text)));
  await transcript.seal(info.id);
}

/** Adds an answer that consists of a call and, for the user alone, the text that `run` returns. */
export async function addCallAnswer(
  transcript: Transcript,
  question: UserInfo,
  run: (messageId: MessageId) => Promise<string | undefined>,
): Promise<void> {
  const info = createInfo(transcript, question);
  transcript.addMessage(info);
  const text = await run(info.id);
  if (text !== undefined) transcript.putPart(info.id, ignoredText(removeControls(text)));
  await transcript.complete({ ...info, finish: "stop" });
}

function createInfo(transcript: Transcript, question: UserInfo): AssistantInfo {
  const now = Date.now();
  return {
    id: transcript.newMessageId(),
    sessionId: question.sessionId,
    role: "assistant",
    parentId: question.id,
    time: { created: now, completed: now },
    agent: question.agent,
    model: { provider: "fairlead", model: "command" },
    cost: 0,
    tokens: noTokens,
    finish: "stop",
  };
}

function ignoredText(text: string): Part {
  return { id: newPartId(), type: "text", text, ignored: true };
}
