import { join } from "node:path";
import { silentLog } from "../../src/base/log.ts";
import type { SessionEvent } from "../../src/message/event.ts";
import type { Message } from "../../src/message/message.ts";
import { Transcript } from "../../src/conversation/transcript.ts";
import { SessionStore } from "../../src/storage/session-store.ts";
import { all, openWriter, sessionInfo } from "../crash/support/stored-session.ts";
import { temporaryFolder } from "./temp.ts";

/** The transcript of one session on a real store. */
export interface StoredTranscript extends AsyncDisposable {
  readonly transcript: Transcript;
  /** The emitted events, copied at that moment. */
  readonly events: SessionEvent[];
  /** The stored messages, oldest first. */
  readonly stored: () => Promise<Message[]>;
}

/** `hear` receives each event. */
export async function storedTranscript(
  hear: (event: SessionEvent) => void = () => {},
): Promise<StoredTranscript> {
  const folder = await temporaryFolder();
  const store = await SessionStore.open({ root: join(folder.path, "store"), log: silentLog });
  const info = sessionInfo();
  await store.create(info);
  const writer = await openWriter(store, info.id);
  const events: SessionEvent[] = [];
  const emit = (event: SessionEvent) => {
    events.push(structuredClone(event));
    hear(event);
  };
  return {
    transcript: new Transcript({ writer, emit, messages: [] }),
    events,
    stored: () => all(store.messages(info.id)),
    [Symbol.asyncDispose]: async () => {
      await writer.close();
      await folder.remove();
    },
  };
}
