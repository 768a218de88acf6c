import { readdir } from "node:fs/promises";
import { join } from "node:path";
import type { App } from "../../app.ts";
import { isMissing, messageOf } from "../../base/errors.ts";
import type { SessionInfo } from "../../message/message.ts";
import { worktreeNameLength } from "../../workspace/worktrees/worktree-path.ts";
import type { Finding } from "./finding.ts";

/** Paths named in one finding. */
const pathLimit = 5;

/** Reports damaged files of the store, and sessions that were rebuilt without their own file. */
export async function damageFindings(app: App): Promise<Finding[]> {
  try {
    const { aside, rebuilt, unplaced } = await (await app.store()).findDamage();
    return [...rebuilt.map(rebuiltFinding), ...unplaced.map(unplacedFinding), ...asideFinding(aside)];
  } catch (error) {
    return [{ what: "Stored files", found: "cannot be read", todo: messageOf(error) }];
  }
}

/**
 * Lists the worktrees of sessions and tasks that are left, because their changes were not merged or their program was
 * killed.
 */
export async function worktreeFindings(app: App): Promise<Finding[]> {
  const names = await readdir(app.folders.worktrees).catch((error: unknown) => {
    if (isMissing(error)) return [];
    throw error;
  });
  if (names.length === 0) return [];
  const sessions = await findSessions(app);
  return names.map((name) => {
    const id = name.slice(-worktreeNameLength);
    const parentId = sessions.get(id)?.parentId;
    const session = parentId ?? id;
    const merge = parentId === undefined ? "/merge" : `"/merge ${id}"`;
    const drop = parentId === undefined ? "/merge drop" : `/merge drop ${id}`;
    return {
      what: "Worktree",
      found: join(app.folders.worktrees, name),
      note: `Merge or discard its changes in its session: fairlead run --session ${session} ${merge}, or "${drop}". Without the session: git worktree remove.`,
    };
  });
}

/** Returns the stored sessions and tasks by the part of their ids that names worktrees. */
async function findSessions(app: App): Promise<ReadonlyMap<string, SessionInfo>> {
  const found = new Map<string, SessionInfo>();
  try {
    const store = await app.store();
    for (const id of await store.sessionIds()) {
      const info = await store.load(id).catch(() => undefined);
      if (info?.worktree !== undefined) found.set(id.slice(-worktreeNameLength), info);
    }
  } catch {
    // Damage of the store has its own finding.
  }
  return found;
}

function rebuiltFinding(id: string): Finding {
  return {
    what: "Session",
    found: `${id} has lost its own file and is rebuilt from its other files`,
    todo: "Open it once: that stores the rebuilt file.",
  };
}

function unplacedFinding(id: string): Finding {
  return {
    what: "Session",
    found: `${id} has lost its own file, and nothing says in which folder it worked`,
    todo: `Open it in that folder: fairlead run --session ${id}`,
  };
}

function asideFinding(paths: readonly string[]): Finding[] {
  if (paths.length === 0) return [];
  const rest = paths.length - pathLimit;
  const named = paths.slice(0, pathLimit).join(", ") + (rest > 0 ? ` and ${rest} more` : "");
  const found = `${paths.length} damaged ${paths.length === 1 ? "file was" : "files were"} moved aside`;
  return [{ what: "Stored files", found, todo: `Check them, then delete them: ${named}` }];
}
