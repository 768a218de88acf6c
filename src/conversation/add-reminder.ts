import { newPartId } from "../message/ids.ts";
import type { UserInfo } from "../message/message.ts";
import type { Transcript } from "./transcript.ts";

/** Adds a synthetic user message, which the model reads after the question and the user does not see. */
export async function addReminder(transcript: Transcript, question: UserInfo, text: string): Promise<void> {
  const { steering: _, injectId: _injectId, ...userInfo } = question;
  const info: UserInfo = { ...userInfo, id: transcript.newMessageId(), time: { created: Date.now() } };
  transcript.addMessage(info);
  transcript.putPart(info.id, { id: newPartId(), type: "text", text, synthetic: true });
  await transcript.seal(info.id);
}
