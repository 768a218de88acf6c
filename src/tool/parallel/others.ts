import { formatPath, isInside } from "../../workspace/paths.ts";
import type { RecentChange } from "../../workspace/recent/recent-changes.ts";
import type { SeenFiles } from "../seen-files.ts";
import type { ToolContext } from "../tool.ts";

/** Files that one line names. */
const namedFiles = 5;
/** Characters of a title in a line. */
const titleLimit = 60;

/** Returns who changed the file and when, as a clause: `the session "Fix login" (ses_1) changed it 2 minutes ago`. */
export function describeOther(change: RecentChange): string {
  const verb = change.after === null ? "deleted" : "changed";
  return `${describeAuthor(change)} ${verb} it ${describeAge(change)}`;
}

/** Names the changed files of the workspace that the session has not seen, in one line; undefined if there are none. */
export function describeNews(
  news: readonly RecentChange[],
  { seen, workspace }: Pick<ToolContext, "seen" | "workspace">,
): string | undefined {
  const isKnown = ({ path, after }: RecentChange) => isSeen(seen, path, after);
  const unseen = news.filter((change) => isHere(change, workspace) && !isKnown(change));
  const byPath = new Map(unseen.toReversed().map((change) => [change.path, change]));
  const files = [...byPath.values()].toReversed();
  if (files.length === 0) return undefined;
  const named = files.slice(0, namedFiles).map((change) => {
    const verb = change.after === null ? "deleted " : "";
    return `${formatPath(workspace.cwd, change.path)} (${verb}by ${describeAuthor(change)}, ${describeAge(change)})`;
  });
  const more = files.length - named.length;
  return `Others changed files here meanwhile: ${named.join(", ")}${more > 0 ? ` and ${more} more` : ""}. Read a file again before you rely on it.`;
}

function isSeen(seen: SeenFiles, path: string, after: string | null | undefined): boolean {
  return typeof after === "string" && seen.get(path) === after;
}

function isHere({ path }: RecentChange, { roots }: ToolContext["workspace"]): boolean {
  return isInside(path, roots);
}

function describeAuthor({ author: { id, title, isTask } }: RecentChange): string {
  const kind = isTask ? "the task" : "the session";
  if (title === undefined || title === "") return `${kind} ${id}`;
  const line = title.replaceAll(/\s+/g, " ");
  return `${kind} "${line.length <= titleLimit ? line : `${line.slice(0, titleLimit)}…`}" (${id})`;
}

function describeAge({ time }: RecentChange): string {
  const minutes = Math.round((Date.now() - time) / 60_000);
  if (minutes < 1) return "less than a minute ago";
  return minutes === 1 ? "a minute ago" : `${minutes} minutes ago`;
}
