import { z } from "zod";
import { isRecord } from "../../base/text/record.ts";
import type { Attachment } from "../../message/part.ts";
import { fitMedium, detectMediaType } from "../../tool/image/media.ts";

/** Maximum bytes of all media in an answer. Providers reject conversations with more. */
const mediaLimitBytes = 20 * 1024 * 1024;

/** A server's answer, converted for the model. */
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

/** Converts content to text in order and separate media. Unsupported content is named in the text. */
export function readBlocks(blocks: readonly unknown[], signal: AbortSignal): Promise<ReadContent> {
  return readAll(blocks, blockSchema, readBlock, signal);
}

/** Converts the result of `resources/read`. */
export function readContents(contents: readonly unknown[], signal: AbortSignal): Promise<ReadContent> {
  return readAll(contents, resourceSchema, readResource, signal);
}

async function readAll<T>(
  items: readonly unknown[],
  schema: z.ZodType<T>,
  read: (item: T, media: Media) => string | Promise<string>,
  signal: AbortSignal,
): Promise<ReadContent> {
  const media = new Media(signal);
  const texts: string[] = [];
  for (const item of items) {
    const parsed = schema.safeParse(item);
    texts.push(
      parsed.success ? await read(parsed.data, media) : "[content of a kind that is not known here]",
    );
  }
  return { text: texts.filter((text) => text !== "").join("\n\n"), attachments: media.attachments };
}

function readBlock(block: z.output<typeof blockSchema>, media: Media): string | Promise<string> {
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

function readResource(
  { uri, mimeType, text, blob }: z.output<typeof resourceSchema>,
  media: Media,
): string | Promise<string> {
  if (text !== undefined) return `<resource uri="${uri}">\n${text}\n</resource>`;
  if (blob === undefined) return `[resource ${uri}: it has no content]`;
  return media.take(blob, mimeType ?? "application/octet-stream", uri);
}

/** Collects the media of an answer up to the limit, sequentially because each is decoded. */
class Media {
  readonly attachments: Attachment[] = [];
  readonly #signal: AbortSignal;
  #bytes = 0;

  constructor(signal: AbortSignal) {
    this.#signal = signal;
  }

  /** Adds a medium. Returns its placeholder for the text. */
  async take(data: string, declaredType: string, filename?: string): Promise<string> {
    const shown = filename ?? declaredType;
    const bytes = Buffer.from(data, "base64");
    const leftOut = (why: string) => `[${shown}: ${bytes.length} bytes of ${declaredType}, left out: ${why}]`;
    if (bytes.length === 0) return leftOut("it is empty.");
    const mime = detectMediaType(bytes) ?? declaredType;
    const fitted = await fitMedium({ bytes, mime, name: filename }, this.#signal);
    if (fitted.outcome === "unfit") return leftOut(fitted.reason);
    const size = Buffer.byteLength(fitted.attachment.url);
    if (this.#bytes + size > mediaLimitBytes) return leftOut("there are too many in one answer.");
    this.#bytes += size;
    this.attachments.push(fitted.attachment);
    return `[${shown} is attached${fitted.note && `, ${fitted.note}`}]`;
  }
}

const resultSchema = z.looseObject({
  content: z.array(z.unknown()).optional(),
  structuredContent: z.unknown().optional(),
  isError: z.boolean().nullish().catch(undefined),
});
/** Converts the result of `tools/call`. */
export const callAnswerSchema = resultSchema.refine(
  (answer) => answer.content !== undefined || answer.structuredContent !== undefined,
  { message: "it has no content" },
);
export type CallAnswer = z.output<typeof callAnswerSchema>;

export const readAnswerSchema = z.looseObject({ contents: z.array(z.unknown()) });

export const promptAnswerSchema = z.looseObject({
  messages: z.array(z.looseObject({ role: z.string(), content: z.unknown() })),
});

/** Structured content repeats the text of servers that send both. */
export async function readAnswer(
  { content = [], structuredContent }: CallAnswer,
  signal: AbortSignal,
): Promise<ReadContent> {
  const read = await readBlocks(content, signal);
  if (read.text !== "" || read.attachments.length > 0 || !isRecord(structuredContent)) return read;
  return { ...read, text: JSON.stringify(structuredContent, undefined, 2) };
}
