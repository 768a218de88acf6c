import { newSessionId, type SessionId } from "../message/ids.ts";
import type { SessionInfo } from "../message/message.ts";
import type { ChangesPart, FileChange, Part } from "../message/part.ts";
import type { SessionStore } from "../storage/session-store.ts";
import type { SessionFile } from "./session-file.ts";

/** Destination of an imported session. */
export interface ImportTarget {
  readonly projectId: string;
  /** Absolute. */
  readonly cwd: string;
}

/**
 * Imports a session with its children, or nothing. Keeps the id if it is free. Imported changes cannot be
 * undone and contain no approvals, because somebody else may have written the file.
 */
export async function importSession(
  store: SessionStore,
  file: SessionFile,
  target: ImportTarget,
): Promise<SessionId> {
  const made: SessionId[] = [];
  try {
    return await storeSessions(store, file, { target, made });
  } catch (error) {
    for (const id of made.reverse()) await store.remove(id);
    throw error;
  }
}

async function storeSessions(
  store: SessionStore,
  file: SessionFile,
  how: { target: ImportTarget; made: SessionId[]; parentId?: SessionId },
): Promise<SessionId> {
  const isFree = (await store.load(file.info.id)) === undefined;
  const id = isFree ? file.info.id : newSessionId();
  const info: SessionInfo = { ...pickImportedInfo(file.info), ...how.target, id };
  await store.create(how.parentId === undefined ? info : { ...info, parentId: how.parentId });
  how.made.push(id);
  await writeMessages(store, { ...file, info });
  for (const child of file.children) await storeSessions(store, child, { ...how, parentId: id });
  return id;
}

/** Fields taken from the file; excludes location, undo state and approvals. */
function pickImportedInfo(info: SessionInfo): SessionInfo {
  const {
    parentId: _,
    revert: __,
    additionalDirectories: ___,
    approval: ____,
    approvals: _____,
    givenPrompt: ______,
    ...rest
  } = info;
  // A negative cost would lift the cost limit.
  return { ...rest, cost: Math.max(0, rest.cost) };
}

async function writeMessages(store: SessionStore, { info, messages, todos }: SessionFile): Promise<void> {
  const opened = await store.openSession(info.id);
  if (opened.status !== "opened") throw new Error(`the imported session ${info.id} is ${opened.status}`);
  const { writer } = opened;
  try {
    for (const { info: message, parts } of messages) {
      writer.putMessage({ ...message, sessionId: info.id });
      for (const part of parts) writer.putPart(message.id, omitSnapshots(part));
      writer.seal(message.id);
    }
    writer.saveTodos([...todos]);
    // Last, so that the file's times are stored.
    writer.saveInfo(info);
  } finally {
    await writer.close();
  }
}

/** Omits snapshot hashes, because an undo would write or delete files by them. */
function omitSnapshots(part: Part): Part {
  if (part.type === "patch" || part.type === "drop")
    return { ...part, changes: part.changes.map(omitHashes) };
  if (part.type === "changes") return omitListedHashes(part);
  if (part.type !== "tool" || !("changes" in part.state) || part.state.changes === undefined) return part;
  return { ...part, state: { ...part.state, changes: part.state.changes.map(omitHashes) } };
}

function omitListedHashes(part: ChangesPart): ChangesPart {
  return { ...part, files: part.files.map((file) => ({ ...file, change: omitHashes(file.change) })) };
}

function omitHashes(change: FileChange): FileChange {
  return { ...change, before: undefined, after: undefined };
}
