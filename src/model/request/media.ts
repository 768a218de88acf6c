import type { Message } from "../../message/message.ts";
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
