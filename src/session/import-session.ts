import { newSessionId, type SessionId } from "../message/ids.ts";
import type { SessionInfo } from "../message/message.ts";
import type { SessionStore } from "../storage/session-store.ts";
import type { SessionFile } from "./session-file.ts";

/** Where an imported session belongs. */
export interface ImportPlace {
  readonly projectId: string;
  /** Absolute. */
  readonly cwd: string;
}

/**
 * Stores a session that came in a file, with its children. It keeps its id where that is free, else it gets another.
 * What its calls changed can be read, not undone: the files' contents are not in it.
 */
export async function importSession(
  store: SessionStore,
  file: SessionFile,
  place: ImportPlace,
  parentId?: SessionId,
): Promise<SessionId> {
  const isFree = (await store.load(file.info.id)) === undefined;
  const id = isFree ? file.info.id : newSessionId();
  const { parentId: _, revert: __, additionalDirectories: ___, ...rest } = file.info;
  const info: SessionInfo = { ...rest, ...place, id, ...(parentId !== undefined && { parentId }) };
  await store.create(info);
  await writeMessages(store, { ...file, info });
  for (const child of file.children) await importSession(store, child, place, id);
  return id;
}

async function writeMessages(store: SessionStore, { info, messages, todos }: SessionFile): Promise<void> {
  const opened = await store.openSession(info.id);
  if (opened.status !== "opened") throw new Error(`the imported session ${info.id} is ${opened.status}`);
  const { writer } = opened;
  try {
    for (const { info: message, parts } of messages) {
      writer.putMessage({ ...message, sessionId: info.id });
      for (const part of parts) writer.putPart(message.id, part);
      writer.seal(message.id);
    }
    writer.saveTodos([...todos]);
    // Written last, so that its times are those of the file.
    writer.saveInfo(info);
  } finally {
    await writer.close();
  }
}
