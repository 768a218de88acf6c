import { newPartId } from "../message/ids.ts";
import type { UserInfo } from "../message/message.ts";
import type { Transcript } from "../conversation/transcript.ts";

export interface CompactionWish {
  auto: boolean;
  /** What the person wrote to ask for it. */
  said?: string;
  instruction?: string;
}

/** Puts the wish to compact into the transcript, where the loop finds it. */
export async function requestCompaction(
  transcript: Transcript,
  question: UserInfo,
  wish: CompactionWish,
): Promise<void> {
  const info: UserInfo = { ...question, id: transcript.newMessageId(), time: { created: Date.now() } };
  await transcript.addMessage(info);
  if (wish.said !== undefined) {
    await transcript.putPart(info.id, { id: newPartId(), type: "text", text: wish.said, ignored: true });
  }
  await transcript.putPart(info.id, {
    id: newPartId(),
    type: "compaction",
    auto: wish.auto,
    ...(wish.instruction && { instruction: wish.instruction }),
  });
  await transcript.seal(info.id);
}
