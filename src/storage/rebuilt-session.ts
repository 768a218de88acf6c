import { dirname } from "node:path";
import { type SessionId, timeOf } from "../message/ids.ts";
import type { Message, SessionInfo } from "../message/message.ts";
import { fallbackTitle } from "../message/title.ts";
import { projectIdOf } from "./project-id.ts";
import type { SessionRow } from "./session-list.ts";

export interface SessionPlace {
  readonly projectId: string;
  readonly cwd: string;
}

/** Data from other files about a session whose own file is damaged or missing. */
export interface RebuildSources {
  readonly id: SessionId;
  /** The project in whose folder the session's file was; undefined when there was no file. */
  readonly projectId: string | undefined;
  readonly projectIds: readonly string[];
  /** The newest info in the session's journal. */
  readonly journal: SessionInfo | undefined;
  /** Oldest first. */
  readonly messages: AsyncIterable<Message>;
  /** Cost of its child sessions, in US dollars. */
  readonly childCost: number;
  /** Rows of the session list, most recent first. */
  readonly rows: readonly SessionRow[];
  /** The place where the client wants to open it. */
  readonly wanted: SessionPlace | undefined;
}

export interface RebuiltSession {
  readonly info: SessionInfo;
  /** Whether the journal contained the whole session info. */
  readonly isComplete: boolean;
}

/** Collected from a session's messages. */
interface Collected {
  count: number;
  created?: number;
  updated: number;
  agent?: string;
  model?: SessionInfo["model"];
  effort?: string | undefined;
  title?: string;
  cost: number;
  /** The place in the newest answer. Older versions did not store it. */
  named?: SessionPlace;
  /** The project's root, if the path of a tool call proves it. */
  root?: SessionPlace;
}

/**
 * Rebuilds a session's info from other files. Fields that no source has stay absent: approvals, the approval
 * setting, the client's instructions, an undo.
 * Returns undefined when the session has neither a journal nor messages, or when no source names its folder.
 */
export async function rebuildSession(sources: RebuildSources): Promise<RebuiltSession | undefined> {
  const { id, journal, wanted, rows } = sources;
  if (journal !== undefined)
    return { info: { ...journal, projectId: sources.projectId ?? journal.projectId }, isComplete: true };
  const row = rows.find((one) => one.id === id);
  const knownProject = sources.projectId ?? row?.projectId;
  const candidates = new Set(knownProject === undefined ? sources.projectIds : [knownProject]);
  const found = await collect(sources.messages, candidates);
  if (found.count === 0) return undefined;
  const neighbor = rows.find((one) => one.projectId === knownProject);
  const location = row ?? found.named ?? found.root ?? wanted ?? neighbor;
  if (location === undefined) return undefined;
  const { cwd } = location;
  const projectId = knownProject ?? location.projectId;
  const title = row?.title ?? found.title;
  const created = found.created ?? creationOf(id) ?? row?.updated ?? 0;
  const info: SessionInfo = {
    id,
    projectId,
    ...(row?.parentId !== undefined && { parentId: row.parentId }),
    cwd,
    ...(row !== undefined &&
      row.additionalDirectories.length > 0 && { additionalDirectories: [...row.additionalDirectories] }),
    ...(title !== undefined && { title, titleSource: row?.title === undefined ? "fallback" : "person" }),
    agent: found.agent ?? "build",
    ...(found.model !== undefined && { model: found.model }),
    ...(found.effort !== undefined && { effort: found.effort }),
    cost: found.cost + sources.childCost,
    time: {
      created,
      updated: Math.max(created, found.updated, row?.updated ?? 0),
      ...(row?.isArchived === true && { archived: row.updated }),
    },
    version: "unknown",
  };
  return { info, isComplete: false };
}

async function collect(
  messages: AsyncIterable<Message>,
  projectIds: ReadonlySet<string>,
): Promise<Collected> {
  const found: Collected = { count: 0, updated: 0, cost: 0 };
  for await (const message of messages) {
    const { info } = message;
    found.count++;
    found.created ??= info.time.created;
    found.updated = Math.max(found.updated, lastTimeOf(info));
    if (info.role === "assistant") {
      found.cost += info.cost;
      if (info.path !== undefined)
        found.named = { projectId: projectIdOf(info.path.root), cwd: info.path.cwd };
    } else {
      found.agent = info.agent;
      if (info.model !== undefined) found.model = info.model;
      found.effort = info.effort ?? found.effort;
      found.title ??= titleOf(message);
    }
    found.root ??= rootIn(message, projectIds);
  }
  return found;
}

function lastTimeOf(info: Message["info"]): number {
  return info.role === "user" ? info.time.created : (info.time.completed ?? info.time.created);
}

function titleOf({ parts }: Message): string | undefined {
  for (const part of parts) {
    if (part.type !== "text" || part.synthetic === true || part.ignored === true) continue;
    if (part.text.trim() !== "") return fallbackTitle(part.text);
  }
  return undefined;
}

/** Finds the root folder among the ancestors of call paths: a project's id is the hash of its root. */
function rootIn({ parts }: Message, projectIds: ReadonlySet<string>): SessionPlace | undefined {
  for (const part of parts) {
    if (part.type !== "tool") continue;
    for (const { path } of part.locations ?? []) {
      for (const cwd of ancestors(path)) {
        const projectId = projectIdOf(cwd);
        if (projectIds.has(projectId)) return { projectId, cwd };
      }
    }
  }
  return undefined;
}

function ancestors(path: string): string[] {
  const parent = dirname(path);
  return parent === path ? [path] : [path, ...ancestors(parent)];
}

function creationOf(id: SessionId): number | undefined {
  const time = timeOf(id);
  return Number.isSafeInteger(time) ? time : undefined;
}
