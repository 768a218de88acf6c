import { z } from "zod";
import { sessionIdSchema, type SessionId } from "../message/ids.ts";

/** Sessions in one page, however many were asked for. */
const pageLimit = 1_000;

export interface SessionQuery {
  projectId?: string;
  cwd?: string;
  /** Lists the children of this session; without it child sessions are left out. */
  parentId?: SessionId;
  includeArchived?: boolean;
  /** Lists nothing but what is archived. */
  onlyArchived?: boolean;
  /** The `nextCursor` of the page before. */
  cursor?: string;
  limit: number;
}

/** What of a session its list is filtered and ordered by, and shows. */
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

/** A page of a list; `nextCursor` where there is more. */
export interface SessionPage<Session> {
  sessions: Session[];
  nextCursor?: string;
}

/** A cursor that no list of sessions gave. */
export class InvalidCursor extends Error {
  override readonly name = "InvalidCursor";
}

/** The wanted ones of rows in order, behind the cursor. Throws {@link InvalidCursor}. */
export function toPage(rows: readonly SessionRow[], query: SessionQuery): SessionPage<SessionRow> {
  const after = query.cursor === undefined ? undefined : parseCursor(query.cursor);
  const wanted = rows.filter(
    (row) => isWanted(row, query) && (after === undefined || newestFirst(after, row) < 0),
  );
  const sessions = wanted.slice(0, Math.max(1, Math.min(query.limit, pageLimit)));
  const last = sessions.at(-1);
  return last && wanted.length > sessions.length ? { sessions, nextCursor: toCursor(last) } : { sessions };
}

function isWanted(row: SessionRow, query: SessionQuery): boolean {
  if (row.parentId !== query.parentId) return false;
  if (query.cwd !== undefined && row.cwd !== query.cwd) return false;
  if (query.onlyArchived === true) return row.isArchived;
  return query.includeArchived === true || !row.isArchived;
}

type Position = Pick<SessionRow, "updated" | "id">;

/** The order of lists: newest updated first, ties by id. */
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
    throw new InvalidCursor("The cursor is not one that a list of sessions gave. List from the start.", {
      cause,
    });
  }
}
