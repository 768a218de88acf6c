import { newSessionId, type SessionId } from "../message/ids.ts";
import type { SessionInfo } from "../message/message.ts";
import type { FileChange, Part } from "../message/part.ts";
import type { SessionStore } from "../storage/session-store.ts";
import type { SessionFile } from "./session-file.ts";

/** Where an imported session belongs. */
export interface ImportPlace {
  readonly projectId: string;
  /** Absolute. */
  readonly cwd: string;
}

/**
 * Stores a session that came in a file, with its children, or nothing of it. It keeps its id where that is free, else
 * it gets another. What its calls changed can be read, not undone, and nothing is approved by it: somebody else may
 * have written the file.
 */
export async function importSession(
  store: SessionStore,
  file: SessionFile,
  place: ImportPlace,
): Promise<SessionId> {
  const made: SessionId[] = [];
  try {
    return await storeFamily(store, file, { place, made });
  } catch (error) {
    for (const id of made.reverse()) await store.remove(id);
    throw error;
  }
}

async function storeFamily(
  store: SessionStore,
  file: SessionFile,
  how: { place: ImportPlace; made: SessionId[]; parentId?: SessionId },
): Promise<SessionId> {
  const isFree = (await store.load(file.info.id)) === undefined;
  const id = isFree ? file.info.id : newSessionId();
  const info: SessionInfo = { ...own(file.info), ...how.place, id };
  await store.create(how.parentId === undefined ? info : { ...info, parentId: how.parentId });
  how.made.push(id);
  await writeMessages(store, { ...file, info });
  for (const child of file.children) await storeFamily(store, child, { ...how, parentId: id });
  return id;
}

/** What the file may say of the session itself: not where it may go, what is taken back, or what goes unasked. */
function own(info: SessionInfo): SessionInfo {
  const {
    parentId: _,
    revert: __,
    additionalDirectories: ___,
    approval: ____,
    approvals: _____,
    givenPrompt: ______,
    ...rest
  } = info;
  // Less than nothing would lift the limit of what it may cost.
  return { ...rest, cost: Math.max(0, rest.cost) };
}

async function writeMessages(store: SessionStore, { info, messages, todos }: SessionFile): Promise<void> {
  const opened = await store.openSession(info.id);
  if (opened.status !== "opened") throw new Error(`the imported session ${info.id} is ${opened.status}`);
  const { writer } = opened;
  try {
    for (const { info: message, parts } of messages) {
      writer.putMessage({ ...message, sessionId: info.id });
      for (const part of parts) writer.putPart(message.id, withoutContents(part));
      writer.seal(message.id);
    }
    writer.saveTodos([...todos]);
    // Written last, so that its times are those of the file.
    writer.saveInfo(info);
  } finally {
    await writer.close();
  }
}

/** Names of contents are left out: an undo goes by them, and would write or delete what the file says. */
function withoutContents(part: Part): Part {
  if (part.type === "patch") return { ...part, changes: part.changes.map(withoutHashes) };
  if (part.type !== "tool" || !("changes" in part.state) || part.state.changes === undefined) return part;
  return { ...part, state: { ...part.state, changes: part.state.changes.map(withoutHashes) } };
}

function withoutHashes(change: FileChange): FileChange {
  return { ...change, before: undefined, after: undefined };
}
