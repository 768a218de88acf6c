import type { Model } from "./model.ts";

/** Whether the model can be sent media of this type as they are. */
export function takesMedium(mime: string, { abilities }: Pick<Model, "abilities">): boolean {
  if (mime.startsWith("image/")) return abilities.images && mime !== "image/svg+xml";
  if (mime === "application/pdf") return abilities.pdf;
  return abilities.audio && (mime === "audio/wav" || mime === "audio/mpeg" || mime === "audio/mp3");
}
