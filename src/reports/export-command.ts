import { collect } from "../base/async.ts";
import { isReverted, type Message, type SessionInfo } from "../message/message.ts";
import { StaleFile } from "../workspace/files/files.ts";
import { isInside, resolvePath } from "../workspace/paths.ts";
import type { Workspace } from "../workspace/workspace.ts";
import { sessionMarkdown } from "./session-markdown.ts";

/** What an export is made of. */
export interface Exported {
  readonly info: SessionInfo;
  readonly workspace: Workspace;
  messagesFromNewest(): AsyncIterable<Message>;
}

/** Letters of the session's id in the file's name. */
const nameLength = 8;

/** `/export [file.md]`: writes the conversation into a new file of the workspace. Answers what was done. */
export async function runExport(exported: Exported, typed: string): Promise<string> {
  const { info, workspace } = exported;
  const name = typed === "" ? `session-${info.id.slice(-nameLength)}.md` : typed;
  if (!/\.(md|markdown|txt)$/i.test(name))
    return `Name a Markdown file: \`/export notes.md\`. As JSON: \`fairlead sessions export --format json ${info.id}\`.`;
  const { path, kind } = await resolvePath(name, workspace);
  if (!isInside(path, workspace.roots)) return `${path} is outside of this session's folders.`;
  if (kind !== "missing") return `${path} is there already. Name another file.`;
  const newestFirst = await collect(exported.messagesFromNewest());
  const visible = newestFirst.reverse().filter((message) => !isReverted(message.info.id, info.revert));
  try {
    await workspace.files.write(path, Buffer.from(sessionMarkdown(info, visible)), null);
  } catch (error) {
    if (error instanceof StaleFile) return `${path} is there already. Name another file.`;
    throw error;
  }
  return `Written: ${path}`;
}
