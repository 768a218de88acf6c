import type { AgentError } from "../message/message.ts";
import { mediumKinds } from "../model/request/media.ts";
import type { Medium, Model } from "../model/model.ts";
import { rejectsAllMedia } from "../model/request/refused-media.ts";

const names: Readonly<Record<Medium, string>> = { images: "images", pdf: "PDF files", audio: "sound" };

/** Names in the configuration (`modalities.input` of a model). */
const modalities: Readonly<Record<Medium, string>> = { images: "image", pdf: "pdf", audio: "audio" };

/** Returns one line for the user: the model was asked without media, why, and what to configure. */
export function refusedMediaText(
  { ref, name, abilities }: Model,
  media: readonly Medium[],
  error: AgentError,
): string {
  const taken = mediumKinds.filter((medium) => abilities[medium] && !media.includes(medium));
  const input = JSON.stringify(["text", ...taken.map((medium) => modalities[medium])]);
  const refused = media.map((medium) => names[medium]).join(" and ");
  const why = error.message.replaceAll(/\s+/g, " ").replace(/[ .]*$/, ".");
  return (
    `${name} was asked again without ${refused}: ${why} ` +
    `No ${refused} go to it ${rejectsAllMedia(error) ? "until Fairlead starts again" : "in this session any more"}. If it takes none, set "modalities": {"input": ${input}} ` +
    `for provider.${ref.provider}.models.${ref.model} in fairlead.json.`
  );
}
