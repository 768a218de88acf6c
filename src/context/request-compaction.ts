import { newPartId } from "../message/ids.ts";
import type { UserInfo } from "../message/message.ts";
import type { Transcript } from "../conversation/transcript.ts";

export interface CompactionRequest {
  auto: boolean;
  /** The user's command text, if the user asked for it. */
  commandText?: string;
  instruction?: string;
}

/** Adds a compaction request to the transcript, where the loop finds it. */
export async function requestCompaction(
  transcript: Transcript,
  question: UserInfo,
  request: CompactionRequest,
): Promise<void> {
  const info: UserInfo = { ...question, id: transcript.newMessageId(), time: { created: Date.now() } };
  transcript.addMessage(info);
  if (request.commandText !== undefined) {
    transcript.putPart(info.id, {
      id: newPartId(),
      type: "text",
      text: request.commandText,
      ignored: true,
    });
  }
  transcript.putPart(info.id, {
    id: newPartId(),
    type: "compaction",
    auto: request.auto,
    ...(request.instruction && { instruction: request.instruction }),
  });
  await transcript.seal(info.id);
}
