import { collect } from "../base/async.ts";
import { isReverted, type Message, type SessionInfo } from "../message/message.ts";
import { StaleFile } from "../workspace/files/files.ts";
import { isInside, resolvePath } from "../workspace/paths.ts";
import type { Workspace } from "../workspace/workspace.ts";
import { renderSession } from "./session-markdown.ts";

/** Input of an export. */
export interface ExportSource {
  readonly info: SessionInfo;
  readonly workspace: Workspace;
  messagesFromNewest(): AsyncIterable<Message>;
}

/** Number of characters of the session id in the default file name. */
const nameLength = 8;

/**
 * Runs `/export [file.md]`: writes the conversation to a new file in the workspace. Returns a message for the
 * user.
 */
export async function runExport(exported: ExportSource, typed: string): Promise<string> {
  const { info, workspace } = exported;
  const name = typed === "" ? `session-${info.id.slice(-nameLength)}.md` : typed;
  if (!/\.(md|markdown|txt)$/i.test(name))
    return `Name a Markdown file: \`/export notes.md\`. As JSON: \`fairlead sessions export --format json ${info.id}\`.`;
  const { path, kind } = await resolvePath(name, workspace);
  if (!isInside(path, workspace.roots)) return `${path} is outside this session's folders.`;
  if (kind !== "missing") return `${path} already exists. Choose another name.`;
  const newestFirst = await collect(exported.messagesFromNewest());
  const visible = newestFirst.reverse().filter((message) => !isReverted(message.info.id, info.revert));
  try {
    await workspace.files.write(path, Buffer.from(renderSession(info, visible)), null);
  } catch (error) {
    if (error instanceof StaleFile) return `${path} already exists. Choose another name.`;
    throw error;
  }
  return `Written: ${path}`;
}
