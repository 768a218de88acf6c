import type {
  RewindMode,
  RewindOptions,
  RewindResult,
  RewindTarget,
  RewoundFiles,
} from "../../undo/rewind.ts";
import { rewindModes } from "../../undo/rewind-modes.ts";
import type { ClientPaths } from "../client-paths.ts";
import type { AcpConnection } from "../connection.ts";
import { invalidParams, invalidRequest, messageNotFound } from "../errors.ts";
import type { RewindParams } from "./extensions.ts";
import type { Call } from "./method-table.ts";

/** The answer to `_session/rewind`: each part that its mode names. */
interface RewindAnswer {
  files?: {
    canRewind: boolean;
    filesChanged: string[];
    insertions: number;
    deletions: number;
    /** Files that are left as they are. */
    skipped: { path: string; reason: string }[];
  };
  conversation?: { rewound: boolean; messagesDropped: number };
}

/** Lists the turns of a session that it can be rewound to, oldest first. */
export async function listRewindPoints(connection: AcpConnection, sessionId: string) {
  const points = await (await connection.getView(sessionId).session.history.load()).rewindPoints();
  return {
    points: points.map(({ id, words, previousId }, index) => ({
      messageId: id,
      resumeAtMessageId: previousId ?? null,
      text: words,
      index: index + 1,
    })),
  };
}

/** Rewinds files, the conversation or both to before a turn. */
export async function rewindSession(
  connection: AcpConnection,
  { sessionId, messageId, mode: name = "files", dryRun = false }: RewindParams,
  call: Call,
): Promise<{ answer: RewindAnswer; lastId: string | undefined }> {
  const mode = parseMode(name);
  const target = { point: messageId, isDropped: true };
  const result = await rewind(connection, sessionId, target, { mode, isDryRun: dryRun }, call);
  const { files, droppedMessages, lastId } = result;
  const answer = {
    ...(files && { files: toFilesAnswer(files, connection.getPaths(sessionId)) }),
    ...(droppedMessages !== undefined && {
      conversation: { rewound: !dryRun, messagesDropped: droppedMessages },
    }),
  };
  return { answer, lastId };
}

/** Drops the messages after the given one. */
export async function rewindTo(
  connection: AcpConnection,
  sessionId: string,
  point: string,
  call: Call,
): Promise<void> {
  await rewind(connection, sessionId, { point, isDropped: false }, conversationOnly, call);
}

/** Drops a turn and those after it. Returns the id of the last message that is left. */
export async function rewindBefore(
  connection: AcpConnection,
  sessionId: string,
  point: string,
): Promise<string | undefined> {
  const { lastId } = await rewind(connection, sessionId, { point, isDropped: true }, conversationOnly);
  return lastId;
}

const conversationOnly: RewindOptions = { mode: "conversation", isDryRun: false };

/** Rewinds after the pending setups of the session. Resulting updates are sent after the response to `call`. */
function rewind(
  connection: AcpConnection,
  sessionId: string,
  target: RewindTarget,
  options: RewindOptions,
  call?: Call,
): Promise<RewindResult> {
  return connection.setupQueue.run(sessionId, async () => {
    const view = connection.getView(sessionId);
    const { session } = view;
    if (session.isBusy)
      throw invalidRequest("a turn of the session is running. Cancel it or wait for its end, then rewind.");
    if (call !== undefined) connection.holdUntilAnswered(view, call.id);
    const rewound = await (await session.history.load()).rewind(target, options);
    switch (rewound.outcome) {
      case "rewound":
        return rewound.result;
      case "unknown message":
        throw messageNotFound(target.point);
      case "not a turn":
        throw invalidParams(`The message "${target.point}" is not a prompt of the user.`, {
          reason: "not_a_user_message",
        });
      case "task runs":
        throw invalidRequest(rewound.problem);
    }
  });
}

function parseMode(name: string): RewindMode {
  const mode = rewindModes.find((known) => known === name);
  if (mode === undefined)
    throw invalidParams(`mode must be one of ${rewindModes.join(", ")}, not "${name}".`);
  return mode;
}

function toFilesAnswer(
  { changed, kept, insertions, deletions }: RewoundFiles,
  paths: ClientPaths,
): NonNullable<RewindAnswer["files"]> {
  return {
    canRewind: kept.length === 0 || changed.length > 0,
    filesChanged: changed.map((path) => paths.path(path)),
    insertions,
    deletions,
    skipped: kept.map(({ path, reason }) => ({ path: paths.path(path), reason })),
  };
}
