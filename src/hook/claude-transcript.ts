import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { makeFolder } from "../base/files/make-folder.ts";
import type { Message } from "../message/message.ts";
import type { Part } from "../message/part.ts";

/** Path of a session's conversation for hooks. The folder is cleaned after 7 days. */
export const getTranscriptPath = (folder: string, sessionId: string): string =>
  join(folder, `${sessionId}.jsonl`);

/** Writes the conversation as lines of JSON, in the form that scripts for Claude Code read. */
export async function writeTranscript(
  path: string,
  folder: string,
  messages: readonly Message[],
): Promise<void> {
  await makeFolder(folder, 0o700);
  const lines = messages.flatMap(toLines);
  await writeFile(path, lines.map((line) => `${JSON.stringify(line)}\n`).join(""), { mode: 0o600 });
}

function toLines({ info, parts }: Message): object[] {
  const common = {
    sessionId: info.sessionId,
    uuid: info.id,
    timestamp: new Date(info.time.created).toISOString(),
  };
  const content = parts.flatMap(toBlock);
  const results = parts.flatMap(toResult);
  return [
    ...(content.length > 0 ? [{ type: info.role, ...common, message: { role: info.role, content } }] : []),
    ...(results.length > 0 ? [{ type: "user", ...common, message: { role: "user", content: results } }] : []),
  ];
}

function toBlock(part: Part): object[] {
  if (part.type === "text" && part.ignored !== true) return [{ type: "text", text: part.text }];
  if (part.type !== "tool") return [];
  return [{ type: "tool_use", id: part.callId, name: part.tool, input: part.state.input ?? {} }];
}

function toResult(part: Part): object[] {
  if (part.type !== "tool") return [];
  const { state, callId } = part;
  if (state.status === "completed")
    return [{ type: "tool_result", tool_use_id: callId, content: state.output }];
  if (state.status === "error")
    return [{ type: "tool_result", tool_use_id: callId, content: state.error, is_error: true }];
  return [];
}
