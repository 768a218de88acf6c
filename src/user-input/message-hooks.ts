import { newPartId } from "../message/ids.ts";
import type { UserInfo } from "../message/message.ts";
import type { Part } from "../message/part.ts";
import type { Part as AuthorPart } from "../plugin/author.ts";
import { toPluginMessage, toPluginModel, toPluginPart } from "../plugin/plugin-type-mapping.ts";
import type { Plugins } from "../plugin/plugins.ts";

/** A user message before it is stored. */
export interface MessageDraft {
  readonly info: UserInfo;
  readonly parts: readonly Part[];
}

/**
 * Returns the message after the plugins' hooks: changed, omitted or added texts, further system text, disabled tools.
 */
export async function applyMessageHooks(
  plugins: Plugins,
  { info, parts }: MessageDraft,
  signal: AbortSignal,
): Promise<MessageDraft> {
  const { id, sessionId, agent, model } = info;
  const input = { sessionID: sessionId, messageID: id, agent, ...(model && { model: toPluginModel(model) }) };
  const authorParts = parts.map((part) => toPluginPart(part, sessionId, id));
  const result = await plugins.message(input, { message: toPluginMessage(info), parts: authorParts }, signal);
  const { system, tools } = result.message;
  const disabled = Object.entries(tools ?? {}).filter(([, on]) => !on);
  return {
    info: {
      ...info,
      system,
      ...(disabled.length > 0 && { tools: { ...info.tools, ...Object.fromEntries(disabled) } }),
    },
    parts: result.parts.flatMap((part) => toParts(part, parts)),
  };
}

/** Texts added by a plugin are synthetic: the user did not write them. Other kinds of parts do not change. */
function toParts({ id, type, text }: AuthorPart, parts: readonly Part[]): Part[] {
  const before = parts.find((part) => part.id === id);
  if (before !== undefined)
    return [before.type === "text" && text !== undefined ? { ...before, text } : before];
  if (type !== "text" || text === undefined) return [];
  return [{ id: newPartId(), type: "text", text, synthetic: true }];
}
