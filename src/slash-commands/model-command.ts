import { nearest } from "../base/text/nearest.ts";
import type { ModelRef } from "../message/message.ts";
import { formatModelRef } from "../model/catalog/catalog.ts";
import type { Model } from "../model/model.ts";
import type { OpenModels } from "../model/providers/providers.ts";

/** The parts of a session that the command uses. */
export interface ModelContext {
  readonly model: Model | undefined;
  readonly project: { readonly models: Pick<OpenModels, "list" | "chooseByName"> };
  readonly settings: {
    setModel(model: ModelRef): Promise<void>;
    setEffort(effort: string | undefined): Promise<void>;
  };
}

/** Maximum number of listed models. */
const listedLimit = 60;

const usage = "`/model provider/name` changes it, `/model provider/name:effort` also how much it thinks.";

/** `/model` and `/model provider/name[:effort]`. */
export async function runModel(session: ModelContext, name: string): Promise<string> {
  return name === "" ? describeModels(session) : changeModel(session, name);
}

function describeModels({ model, project }: ModelContext): string {
  const names = project.models.list().map(nameOf);
  const more = names.length - listedLimit;
  const current =
    model === undefined
      ? "No model is selected."
      : `The model is **${nameOf(model)}**${describeEffort(model)}.`;
  return [
    `${current} ${usage}`,
    "",
    ...names.slice(0, listedLimit).map((name) => `- ${name}`),
    ...(more > 0 ? [`- and ${more} more: \`fairlead models\` lists all`] : []),
  ].join("\n");
}

function describeEffort({ ref, variants }: Model): string {
  const effort = ref.variant === undefined ? "" : ` with the effort ${ref.variant}`;
  return variants.length === 0 ? effort : `${effort} (efforts: ${variants.join(", ")})`;
}

async function changeModel({ project, settings }: ModelContext, name: string): Promise<string> {
  const names = project.models.list().map(nameOf);
  // The provider is often left out.
  const full = names.includes(name) ? name : (findOnly(names, name) ?? name);
  const choice = project.models.chooseByName(full);
  if (choice.outcome === "none") {
    const near = nearest(name, names);
    return `${choice.error.message}${near === undefined ? "" : ` Did you mean ${near}?`}`;
  }
  const { variant, ...ref } = choice.model.ref;
  await settings.setModel(ref);
  if (variant !== undefined) await settings.setEffort(variant);
  return `The model is now **${nameOf(choice.model)}**${variant === undefined ? "" : ` with the effort ${variant}`}. It answers your next message.`;
}

/** Returns the model with this name, with or without an effort, if only one provider has it. */
function findOnly(names: readonly string[], name: string): string | undefined {
  const matching = names.flatMap((full) => {
    const short = full.slice(full.indexOf("/") + 1);
    return name === short || name.startsWith(`${short}:`) ? [full + name.slice(short.length)] : [];
  });
  return matching.length === 1 ? matching[0] : undefined;
}

const nameOf = ({ ref: { provider, model } }: Model): string => formatModelRef({ provider, model });
