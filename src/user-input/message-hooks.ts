import { newPartId } from "../message/ids.ts";
import type { UserInfo } from "../message/message.ts";
import type { Part } from "../message/part.ts";
import type { Part as AuthorPart } from "../plugin/author.ts";
import { authorMessage, authorModel, authorPart } from "../plugin/plugin-type-mapping.ts";
import type { Plugins } from "../plugin/plugins.ts";

/** A person's message before it is stored. */
export interface MessageDraft {
  readonly info: UserInfo;
  readonly parts: readonly Part[];
}

/** The message as plugins leave it: texts changed, left out or added; further system text; tools switched off. */
export async function applyMessageHooks(
  plugins: Plugins,
  { info, parts }: MessageDraft,
  signal: AbortSignal,
): Promise<MessageDraft> {
  const { id, sessionId, agent, model } = info;
  const input = { sessionID: sessionId, messageID: id, agent, ...(model && { model: authorModel(model) }) };
  const words = parts.map((part) => authorPart(part, sessionId, id));
  const left = await plugins.message(input, { message: authorMessage(info), parts: words }, signal);
  const { system, tools } = left.message;
  const off = Object.entries(tools ?? {}).filter(([, on]) => !on);
  return {
    info: {
      ...info,
      system,
      ...(off.length > 0 && { tools: { ...info.tools, ...Object.fromEntries(off) } }),
    },
    parts: left.parts.flatMap((part) => toParts(part, parts)),
  };
}

/** A text that a plugin adds is for the model: the person did not write it. Other kinds are as they were. */
function toParts({ id, type, text }: AuthorPart, parts: readonly Part[]): Part[] {
  const before = parts.find((part) => part.id === id);
  if (before !== undefined)
    return [before.type === "text" && text !== undefined ? { ...before, text } : before];
  if (type !== "text" || text === undefined) return [];
  return [{ id: newPartId(), type: "text", text, synthetic: true }];
}
