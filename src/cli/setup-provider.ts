import { type Preset, presets } from "../model/catalog.ts";
import type { Catalog, KnownModel } from "../model/known-models.ts";
import type { Questions } from "./questions.ts";
import { UsageError } from "./usage.ts";

/** The provider that the person wants to use. */
export interface ChosenProvider {
  readonly id: string;
  readonly name: string;
  readonly baseURL: string;
  /** At another address than a known provider's. */
  readonly isCustom: boolean;
  /** On this machine, needs no key. */
  readonly isLocal: boolean;
  readonly keyVariables: readonly string[];
  readonly models: readonly KnownModel[];
  readonly defaultModel: string | undefined;
}

const customId = "custom";

/** Asks, unless the flags say it already. */
export async function chooseProvider(
  given: { id?: string | undefined; baseURL?: string | undefined },
  { questions, catalog }: { questions: Questions; catalog: Catalog },
): Promise<ChosenProvider> {
  const id = given.id ?? (given.baseURL === undefined ? await askForId(questions) : customId);
  const preset = presets.find((one) => one.id === id);
  if (given.baseURL !== undefined && !URL.canParse(given.baseURL))
    throw new UsageError(`--base-url takes an address such as http://localhost:8000/v1`, "setup");
  if (preset !== undefined && given.baseURL === undefined) return fromPreset(preset, catalog);
  if (preset === undefined && id !== customId && given.baseURL === undefined)
    throw new UsageError(
      `there is no provider "${id}"; there are ${presets.map((one) => one.id).join(", ")}. Another one needs --base-url`,
      "setup",
    );
  return custom(id, given.baseURL, questions);
}

async function askForId(questions: Questions): Promise<string> {
  const local = presets.filter((preset) => preset.local === true);
  const hosted = presets.filter((preset) => preset.local !== true);
  return questions.choose("Which provider do you want to use?", [
    ...hosted.map(({ id, name }) => ({ value: id, label: name })),
    ...local.map(({ id, name }) => ({ value: id, label: name, hint: "on this machine" })),
    { value: customId, label: "Another one", hint: "any OpenAI-compatible address" },
  ]);
}

function fromPreset(preset: Preset, catalog: Catalog): ChosenProvider {
  const { id, name, baseURL, local = false, keyVariables, defaultModel } = preset;
  const models = catalog.modelsOf(id);
  return { id, name, baseURL, isCustom: false, isLocal: local, keyVariables, models, defaultModel };
}

async function custom(id: string, given: string | undefined, questions: Questions): Promise<ChosenProvider> {
  const baseURL =
    given ??
    (await questions.text("Its address, such as https://models.example.com/v1:", {
      check: (answer) =>
        /^https?:\/\/./.test(answer) && URL.canParse(answer) ? undefined : "Not an address.",
    }));
  const { hostname } = new URL(baseURL);
  const name =
    id !== customId
      ? id
      : await questions.text("A short name for it:", {
          suggestion: nameOf(hostname),
          check: (answer) =>
            /^[a-z0-9][a-z0-9._-]*$/.test(answer) ? undefined : "Small letters, digits and - only.",
        });
  const isLocal = ["localhost", "127.0.0.1", "[::1]"].includes(hostname);
  const nothing = { keyVariables: [], models: [], defaultModel: undefined };
  return { id: name, name, baseURL: baseURL.replace(/\/+$/, ""), isCustom: true, isLocal, ...nothing };
}

/** `api.example.com` is example, an address without a name is local. */
function nameOf(hostname: string): string {
  const labels = hostname.split(".").filter((label) => /^[a-z]/.test(label));
  return labels.at(-2) ?? labels[0] ?? "local";
}
