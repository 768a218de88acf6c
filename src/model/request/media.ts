import type { Message } from "../../message/message.ts";
import type { Attachment } from "../../message/part.ts";
import type { Medium, Model } from "../model.ts";

export const mediumKinds: readonly Medium[] = ["images", "pdf", "audio"];

/** Returns whether the model accepts media of this type. */
export function acceptsMedium(mime: string, { abilities }: Pick<Model, "abilities">): boolean {
  const medium = mediumOf(mime);
  return medium !== undefined && abilities[medium];
}

/** Returns the kinds of media in these messages that are sent to the model. */
export function listMedia(messages: readonly Message[], model: Pick<Model, "abilities">): Medium[] {
  const sent = new Set(
    messages
      .flatMap(listMimes)
      .filter((mime) => acceptsMedium(mime, model))
      .map(mediumOf),
  );
  return mediumKinds.filter((medium) => sent.has(medium));
}

/** Returns the model without support for these kinds of media. */
export function omitMedia(model: Model, media: readonly Medium[]): Model {
  const abilities = { ...model.abilities };
  for (const medium of media) abilities[medium] = false;
  return { ...model, abilities };
}

/** Returns the part of a prompt for an attachment: a file, or a line of text if the model does not accept it. */
export function toMediaPart({ mime, url, filename }: Attachment, model: Model) {
  const name = filename === undefined ? "" : ` "${filename}"`;
  const text = (why: string) => ({ type: "text" as const, text: `[Attached ${mime}${name}: ${why}]` });
  if (!acceptsMedium(mime, model)) return text("this model cannot see it");
  const data = parseBase64(url);
  const isAddress = /^https?:/.test(url) && mime.startsWith("image/") && URL.canParse(url);
  if (data === undefined && !isAddress) return text("its content is not available");
  const source =
    data === undefined ? { type: "url" as const, url: new URL(url) } : { type: "data" as const, data };
  return {
    type: "file" as const,
    data: source,
    mediaType: mime,
    ...(filename !== undefined && { filename }),
  };
}

function parseBase64(url: string): string | undefined {
  const comma = url.indexOf(",");
  if (!url.startsWith("data:") || comma < 0) return undefined;
  const data = url.slice(comma + 1);
  return url.slice(0, comma).endsWith(";base64")
    ? data
    : Buffer.from(decodeURIComponent(data)).toString("base64");
}

function mediumOf(mime: string): Medium | undefined {
  if (mime.startsWith("image/")) return mime === "image/svg+xml" ? undefined : "images";
  if (mime === "application/pdf") return "pdf";
  return mime === "audio/wav" || mime === "audio/mpeg" || mime === "audio/mp3" ? "audio" : undefined;
}

function listMimes({ info, parts }: Message): string[] {
  return parts.flatMap((part) => {
    if (part.type === "file") return info.role === "user" ? [part.mime] : [];
    if (part.type !== "tool" || part.state.status !== "completed") return [];
    return part.state.compactedAt === undefined ? (part.state.attachments ?? []).map(({ mime }) => mime) : [];
  });
}
