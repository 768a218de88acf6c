import { UserError } from "../../base/errors.ts";
import { isSessionId } from "../../message/ids.ts";
import type { SessionInfo } from "../../message/message.ts";
import type { SessionStore } from "../../storage/session-store.ts";
import type { Call } from "../command-line/command.ts";
import { existingFolder } from "../local-app.ts";

/** Finds the session named by the first operand. --cwd and --all select the folder of `last`. */
export async function findCalledSession(store: SessionStore, call: Call): Promise<SessionInfo> {
  return findSession(store, call.operands[0] ?? "last", await getFolderOfLast(call));
}

/** Returns the folder of `last`: --cwd, else the working directory; undefined with --all. */
export async function getFolderOfLast(call: Call): Promise<string | undefined> {
  return call.has("all") ? undefined : existingFolder(call.text("cwd") ?? ".");
}

/**
 * Finds a session by its id, the end of its id, or `last`: the newest of the folder, or of all folders when undefined.
 * Throws {@link UserError} when no session or more than one matches.
 */
export async function findSession(
  store: SessionStore,
  given: string,
  folder: string | undefined,
): Promise<SessionInfo> {
  if (given === "last") return newestSession(store, folder);
  // Tables in narrow terminals truncate ids at the start.
  const name = given.replace(/^…/, "");
  const info = isSessionId(name) ? await store.load(name) : undefined;
  if (info !== undefined) return info;
  const ids =
    name.length < minSuffixLength ? [] : (await store.sessionIds()).filter((id) => id.endsWith(name));
  const [only] = ids;
  if (ids.length > 1) throw new UserError(`Several sessions end with ${name}: ${ids.join(", ")}.`);
  const found = only && (await store.load(only));
  if (found === undefined)
    throw new UserError(`There is no session ${name}. fairlead sessions list --all shows them.`);
  return found;
}

async function newestSession(store: SessionStore, folder: string | undefined): Promise<SessionInfo> {
  const { sessions } = await store.list({ ...(folder !== undefined && { cwd: folder }), limit: 1 });
  const [newest] = sessions;
  if (newest !== undefined) return newest;
  throw new UserError(
    folder === undefined
      ? "There is no session yet."
      : `There is no session in ${folder}. fairlead sessions --all lists those of other folders.`,
  );
}

/** Minimum letters of an id's end: the beginnings of ids are similar. */
const minSuffixLength = 6;
