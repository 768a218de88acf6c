import { z } from "zod";
import { sessionIdSchema, type SessionId } from "../message/ids.ts";

/** Maximum number of sessions in a page. */
const pageLimit = 1_000;

export interface SessionQuery {
  projectId?: string;
  cwd?: string;
  /** Lists the children of this session. Without it, child sessions are omitted. */
  parentId?: SessionId;
  includeArchived?: boolean;
  /** Lists only archived sessions. */
  onlyArchived?: boolean;
  /** The `nextCursor` of the previous page. */
  cursor?: string;
  limit: number;
}

/** The fields of a session that lists show, filter and sort by. */
export interface SessionRow {
  id: SessionId;
  projectId: string;
  parentId: SessionId | undefined;
  cwd: string;
  additionalDirectories: readonly string[];
  title: string | undefined;
  /** Milliseconds since 1970. */
  updated: number;
  isArchived: boolean;
}

/** A page of a list; `nextCursor` is set when there is more. */
export interface SessionPage<Session> {
  sessions: Session[];
  nextCursor?: string;
}

/** Thrown for a cursor that did not come from a session list. */
export class InvalidCursor extends Error {
  override readonly name = "InvalidCursor";
}

/** Returns the page of matching rows after the cursor. `rows` must be sorted. Throws {@link InvalidCursor}. */
export function toPage(rows: readonly SessionRow[], query: SessionQuery): SessionPage<SessionRow> {
  const after = query.cursor === undefined ? undefined : parseCursor(query.cursor);
  const matching = rows.filter(
    (row) => matches(row, query) && (after === undefined || newestFirst(after, row) < 0),
  );
  const sessions = matching.slice(0, Math.max(1, Math.min(query.limit, pageLimit)));
  const last = sessions.at(-1);
  return last && matching.length > sessions.length ? { sessions, nextCursor: toCursor(last) } : { sessions };
}

function matches(row: SessionRow, query: SessionQuery): boolean {
  if (row.parentId !== query.parentId) return false;
  if (query.cwd !== undefined && row.cwd !== query.cwd) return false;
  if (query.onlyArchived === true) return row.isArchived;
  return query.includeArchived === true || !row.isArchived;
}

type Position = Pick<SessionRow, "updated" | "id">;

/** Compares by update time, newest first, then by id. */
export function newestFirst(a: Position, b: Position): number {
  return b.updated - a.updated || (a.id < b.id ? 1 : a.id > b.id ? -1 : 0);
}

const positionSchema = z.tuple([z.number(), sessionIdSchema]);

function toCursor({ updated, id }: Position): string {
  return Buffer.from(JSON.stringify([updated, id])).toString("base64url");
}

function parseCursor(cursor: string): Position {
  try {
    const [updated, id] = positionSchema.parse(JSON.parse(Buffer.from(cursor, "base64url").toString()));
    return { updated, id };
  } catch (cause) {
    throw new InvalidCursor("Invalid cursor: it did not come from a session list. List from the start.", {
      cause,
    });
  }
}
