import { posix } from "node:path";
import type { ContentBlock, SessionUpdate } from "@agentclientprotocol/sdk/unstable";
import { clientIdOf, type Message } from "../../message/message.ts";
import type { FilePart } from "../../message/part.ts";
import type { Audience, PromptBlock } from "../../conversation/prompt-input.ts";
import { invalidParams } from "../errors.ts";

/** Characters of text in one prompt; more than any model accepts. */
const textLimit = 10_000_000;

/** Converts a prompt for the engine. Throws if it is empty or contains unsupported content. */
export function toPromptBlocks(blocks: readonly ContentBlock[]): PromptBlock[] {
  if (blocks.every(isBlank)) throw invalidParams("The prompt is empty.");
  if (blocks.every((block) => isBlank(block) || isForUserOnly(block)))
    throw invalidParams("The prompt is empty: all of its content is for the user only.");
  assertShort(blocks);
  return blocks.map(toPromptBlock);
}

function assertShort(blocks: readonly ContentBlock[]): void {
  const length = blocks.reduce((sum, block) => sum + (block.type === "text" ? block.text.length : 0), 0);
  if (length <= textLimit) return;
  throw invalidParams(
    `The prompt has ${length} characters of text; the limit is ${textLimit}. Put long text into a file and name the file.`,
  );
}

function isBlank(block: ContentBlock): boolean {
  return block.type === "text" && block.text.trim() === "";
}

function isForUserOnly(block: ContentBlock): boolean {
  return block.type === "text" && toAudience(block.annotations?.audience) === "person";
}

function toPromptBlock(block: ContentBlock): PromptBlock {
  switch (block.type) {
    case "text":
      return { type: "text", text: block.text, audience: toAudience(block.annotations?.audience) };
    case "image":
      return { type: "media", mime: block.mimeType, data: removeDataUrlPrefix(block.data) };
    case "resource_link":
      return {
        type: "link",
        uri: block.uri,
        name: block.name,
        ...(block.mimeType && { mime: block.mimeType }),
      };
    case "resource": {
      const { resource } = block;
      const mime = resource.mimeType ?? undefined;
      if ("text" in resource)
        return { type: "embedded", uri: resource.uri, text: resource.text, ...(mime && { mime }) };
      return {
        type: "media",
        mime: mime ?? "application/octet-stream",
        data: removeDataUrlPrefix(resource.blob),
        name: resource.uri,
      };
    }
    case "audio":
      throw invalidParams("Audio in prompts is not supported.");
    default:
      throw invalidParams("This kind of content in prompts is not supported.");
  }
}

/** Some clients send a whole data URL instead of its data. */
function removeDataUrlPrefix(data: string): string {
  return data.startsWith("data:") ? data.slice(data.indexOf(",") + 1) : data;
}

function toAudience(audience: readonly string[] | null | undefined): Audience {
  if (audience === null || audience === undefined || audience.length === 0) return "both";
  if (audience.every((who) => who === "assistant")) return "model";
  return audience.every((who) => who === "user") ? "person" : "both";
}

/** Creates the updates that replay a user message. */
export function toUserUpdates(message: Message): SessionUpdate[] {
  const messageId = clientIdOf(message.info);
  return message.parts.flatMap((part): SessionUpdate[] => {
    if (part.type === "text" && part.synthetic !== true) {
      return [{ sessionUpdate: "user_message_chunk", messageId, content: { type: "text", text: part.text } }];
    }
    if (part.type === "file")
      return [{ sessionUpdate: "user_message_chunk", messageId, content: toFileContent(part) }];
    return [];
  });
}

/** Base64 characters of a replayed image; some clients fail on a line of 1 MiB. */
const imageLength = 960 * 1024;

function toFileContent(part: FilePart): ContentBlock {
  const data = /^data:[^,]*;base64,(.*)$/s.exec(part.url)?.[1];
  const isShown = data !== undefined && data.length <= imageLength && part.mime.startsWith("image/");
  if (isShown) return { type: "image", mimeType: part.mime, data };
  const uri = data === undefined ? part.url : `attachment:${part.filename ?? part.id}`;
  const { filename = uri } = part;
  return { type: "resource_link", uri, name: filename === uri ? posix.basename(uri) : filename };
}
