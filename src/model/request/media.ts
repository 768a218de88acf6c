import type { Message } from "../../message/message.ts";
import type { Medium, Model } from "../model.ts";

export const mediumKinds: readonly Medium[] = ["images", "pdf", "audio"];

/** Whether the model can be sent media of this type as they are. */
export function takesMedium(mime: string, { abilities }: Pick<Model, "abilities">): boolean {
  const medium = mediumOf(mime);
  return medium !== undefined && abilities[medium];
}

/** The kinds of media that the model is sent with these messages. */
export function mediaIn(messages: readonly Message[], model: Pick<Model, "abilities">): Medium[] {
  const sent = new Set(
    messages
      .flatMap(mimesIn)
      .filter((mime) => takesMedium(mime, model))
      .map(mediumOf),
  );
  return mediumKinds.filter((medium) => sent.has(medium));
}

/** The same model, to be asked without media of these kinds. */
export function withoutMedia(model: Model, media: readonly Medium[]): Model {
  const abilities = { ...model.abilities };
  for (const medium of media) abilities[medium] = false;
  return { ...model, abilities };
}

function mediumOf(mime: string): Medium | undefined {
  if (mime.startsWith("image/")) return mime === "image/svg+xml" ? undefined : "images";
  if (mime === "application/pdf") return "pdf";
  return mime === "audio/wav" || mime === "audio/mpeg" || mime === "audio/mp3" ? "audio" : undefined;
}

function mimesIn({ info, parts }: Message): string[] {
  return parts.flatMap((part) => {
    if (part.type === "file") return info.role === "user" ? [part.mime] : [];
    if (part.type !== "tool" || part.state.status !== "completed") return [];
    return part.state.compactedAt === undefined ? (part.state.attachments ?? []).map(({ mime }) => mime) : [];
  });
}
