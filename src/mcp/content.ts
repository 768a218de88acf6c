import { z } from "zod";
import type { Attachment } from "../message/part.ts";
import { isRecord } from "./records.ts";

/** Bytes of one picture or document, and of all of one answer: a larger one makes providers refuse the conversation. */
const mediaLimitBytes = 5 * 1024 * 1024;
const allMediaLimitBytes = 20 * 1024 * 1024;

/** What a server answered, as the model takes it. */
export interface ReadContent {
  readonly text: string;
  readonly attachments: readonly Attachment[];
}

const resourceSchema = z.looseObject({
  uri: z.string(),
  mimeType: z.string().nullish(),
  text: z.string().optional(),
  blob: z.string().optional(),
});

const blockSchema = z.discriminatedUnion("type", [
  z.looseObject({ type: z.literal("text"), text: z.string() }),
  z.looseObject({ type: z.literal("image"), data: z.string(), mimeType: z.string() }),
  z.looseObject({ type: z.literal("audio"), data: z.string(), mimeType: z.string() }),
  z.looseObject({ type: z.literal("resource"), resource: resourceSchema }),
  z.looseObject({
    type: z.literal("resource_link"),
    uri: z.string(),
    name: z.string().optional(),
    description: z.string().nullish(),
  }),
]);

/** Text in its order, media beside it; what cannot be shown is named in its place. */
export function readBlocks(blocks: readonly unknown[]): ReadContent {
  const media = new Media();
  const texts = blocks.map((block) => {
    const parsed = blockSchema.safeParse(block);
    return parsed.success ? readBlock(parsed.data, media) : `[content of a kind that is not known here]`;
  });
  return { text: texts.filter((text) => text !== "").join("\n\n"), attachments: media.attachments };
}

/** What `resources/read` answered. */
export function readContents(contents: readonly unknown[]): ReadContent {
  const media = new Media();
  const texts = contents.map((one) => {
    const parsed = resourceSchema.safeParse(one);
    return parsed.success ? readResource(parsed.data, media) : "[content of a kind that is not known here]";
  });
  return { text: texts.filter((text) => text !== "").join("\n\n"), attachments: media.attachments };
}

function readBlock(block: z.output<typeof blockSchema>, media: Media): string {
  switch (block.type) {
    case "text":
      return block.text;
    case "image":
    case "audio":
      return media.take(block.data, block.mimeType);
    case "resource":
      return readResource(block.resource, media);
    case "resource_link": {
      const about = block.description ? `: ${block.description}` : "";
      return `[resource ${block.uri}${block.name === undefined ? "" : ` (${block.name})`}${about}]`;
    }
  }
}

function readResource({ uri, mimeType, text, blob }: z.output<typeof resourceSchema>, media: Media): string {
  if (text !== undefined) return `<resource uri="${uri}">\n${text}\n</resource>`;
  if (blob === undefined) return `[resource ${uri}: it has no content]`;
  return media.take(blob, mimeType ?? "application/octet-stream", uri);
}

/** Media of one answer, as far as they are what they say and fit. */
class Media {
  readonly attachments: Attachment[] = [];
  #bytes = 0;

  /** What stands in the text in their place. */
  take(data: string, mime: string, filename?: string): string {
    const name = filename ?? mime;
    const bytes = Buffer.from(data, "base64");
    const known = mediaTypeOf(bytes) ?? (isAudio(mime, bytes) ? mime : undefined);
    if (known === undefined)
      return `[${name}: ${bytes.length} bytes of ${mime}, which cannot be shown; left out]`;
    this.#bytes += bytes.length;
    if (bytes.length > mediaLimitBytes || this.#bytes > allMediaLimitBytes)
      return `[${name}: ${bytes.length} bytes are too many to be shown; left out]`;
    const url = `data:${known};base64,${bytes.toString("base64")}`;
    this.attachments.push({ mime: known, url, ...(filename !== undefined && { filename }) });
    return `[${name} is attached]`;
  }
}

/** Judged by the first bytes: what only calls itself a picture would make providers refuse the conversation. */
function mediaTypeOf(bytes: Buffer): string | undefined {
  const start = bytes.toString("latin1", 0, 12);
  if (start.startsWith("\x89PNG\r\n\x1a\n")) return "image/png";
  if (start.startsWith("\xff\xd8\xff")) return "image/jpeg";
  if (/^GIF8[79]a/.test(start)) return "image/gif";
  if (start.startsWith("RIFF") && start.endsWith("WEBP")) return "image/webp";
  return start.startsWith("%PDF-") ? "application/pdf" : undefined;
}

function isAudio(mime: string, bytes: Buffer): boolean {
  return bytes.length > 0 && (mime === "audio/wav" || mime === "audio/mpeg" || mime === "audio/mp3");
}

const resultSchema = z.looseObject({
  content: z.array(z.unknown()).optional(),
  structuredContent: z.unknown().optional(),
  isError: z.boolean().nullish().catch(undefined),
});
/** What `tools/call` answers. */
export const callAnswerSchema = resultSchema.refine(
  (answer) => answer.content !== undefined || answer.structuredContent !== undefined,
  { message: "it has no content" },
);
export type CallAnswer = z.output<typeof callAnswerSchema>;

export const readAnswerSchema = z.looseObject({ contents: z.array(z.unknown()) });

export const promptAnswerSchema = z.looseObject({
  messages: z.array(z.looseObject({ role: z.string(), content: z.unknown() })),
});

/** Structured content says the same as the text of servers that give both. */
export function readAnswer({ content = [], structuredContent }: CallAnswer): ReadContent {
  const read = readBlocks(content);
  if (read.text !== "" || read.attachments.length > 0 || !isRecord(structuredContent)) return read;
  return { ...read, text: JSON.stringify(structuredContent, undefined, 2) };
}
