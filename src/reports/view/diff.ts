import { structuredPatch } from "diff";
import type { FileChange } from "../../message/part.ts";
import { escapeHtml } from "./markdown.ts";

/** Loads a stored content by its hash; undefined if it is no longer stored. */
export type LoadContent = (hash: string) => Promise<Buffer | undefined>;

/** Larger contents and longer diffs are not shown: a page with them would be slow. */
const contentLimit = 512 * 1024;
const lineLimit = 400;
const timeoutMs = 200;

/** Renders the change of a file with its diff, or with an explanation if there is none to show. */
export async function renderChange(change: FileChange, load: LoadContent, cwd: string): Promise<string> {
  const path = shortPath(change.path, cwd);
  const name = change.fromPath === undefined ? path : `${shortPath(change.fromPath, cwd)} → ${path}`;
  const counts = `<span class="added">+${change.additions}</span> <span class="removed">−${change.deletions}</span>`;
  const head = `<summary><code>${escapeHtml(name)}</code> ${counts}</summary>`;
  return `<details class="diff" open>${head}${await renderLines(change, load)}</details>`;
}

async function renderLines({ before, after }: FileChange, load: LoadContent): Promise<string> {
  const [old, fresh] = [await loadText(before, load), await loadText(after, load)];
  if (old === undefined || fresh === undefined)
    return note("The contents are not text, too large, or no longer stored.");
  const patch = structuredPatch("", "", old, fresh, "", "", { context: 3, timeout: timeoutMs });
  if (patch === undefined) return note("The contents differ too much to be compared.");
  const lines = patch.hunks.flatMap(({ oldStart, newStart, lines: changed }) => [
    `@@ ${oldStart} → ${newStart} @@`,
    ...changed,
  ]);
  const shown = lines
    .slice(0, lineLimit)
    .map((line) => `<span class="${classOf(line)}">${escapeHtml(line)}</span>`);
  const rest = lines.length - shown.length;
  return `<pre>${shown.join("\n")}</pre>${rest > 0 ? note(`${rest} more lines`) : ""}`;
}

function classOf(line: string): string {
  if (line.startsWith("+")) return "added";
  if (line.startsWith("-")) return "removed";
  return line.startsWith("@@") ? "place" : "same";
}

/** Null means "no such file", undefined "not stored". */
async function loadText(hash: string | null | undefined, load: LoadContent): Promise<string | undefined> {
  if (hash === null) return "";
  const bytes = hash === undefined ? undefined : await load(hash);
  if (bytes === undefined || bytes.length > contentLimit || bytes.includes(0)) return undefined;
  return bytes.toString("utf8");
}

function shortPath(path: string, cwd: string): string {
  return path.startsWith(`${cwd}/`) ? path.slice(cwd.length + 1) : path;
}

const note = (text: string): string => `<p class="note">${escapeHtml(text)}</p>`;
