import type { Api } from "../../config/api.ts";
import { isLoopback } from "../../base/loopback.ts";
import { isKnownToken } from "../../base/secrets/secret-forms.ts";
import { type Preset, presets } from "../../model/catalog/catalog.ts";
import type { Catalog, KnownModel } from "../../model/catalog/known-models.ts";
import type { Questions } from "../terminal/questions.ts";
import { readAddress } from "./typed-address.ts";
import { UsageError } from "../command-line/usage.ts";

/** The provider that the user chose. */
export interface ChosenProvider {
  readonly id: string;
  readonly name: string;
  readonly baseURL: string;
  /** Whether its address is not that of a known provider. */
  readonly isCustom: boolean;
  /** The API of its models, if the user named one. */
  readonly api?: Api;
  /** Whether it runs on this machine and needs no key. */
  readonly isLocal: boolean;
  readonly keyVariables: readonly string[];
  readonly models: readonly KnownModel[];
  readonly defaultModel: string | undefined;
}

const customId = "custom";

/** Asks for the provider, unless the flags name it. */
export async function chooseProvider(
  given: { id?: string | undefined; baseURL?: string | undefined },
  { questions, catalog }: { questions: Questions; catalog: Catalog },
): Promise<ChosenProvider> {
  if (given.baseURL !== undefined) checkBaseURL(given.baseURL);
  const answer = given.id ?? (given.baseURL === undefined ? await askForProvider(questions) : customId);
  const isAddress = given.id === undefined && readAddress(answer).outcome !== "none";
  if (isAddress) return createCustomProvider(customId, await askForAddress(questions, answer), questions);
  const id = answer;
  const preset = presets.find((one) => one.id === id);
  if (preset !== undefined && given.baseURL === undefined) return fromPreset(preset, catalog);
  if (preset === undefined && id !== customId && given.baseURL === undefined)
    throw new UsageError(
      `there is no provider "${id}"; there are ${presets.map((one) => one.id).join(", ")}. Another one needs --base-url`,
      "setup",
    );
  return createCustomProvider(id, given.baseURL ?? (await askForAddress(questions)), questions);
}

function checkBaseURL(given: string): void {
  const address = readAddress(given);
  if (address.outcome === "address") return;
  const hint = address.outcome === "guess" ? `. Did you mean ${address.url}?` : "";
  throw new UsageError(`--base-url takes an address such as http://localhost:8000/v1${hint}`, "setup");
}

/** Returns the id of a provider, or another one's address as typed. */
async function askForProvider(questions: Questions): Promise<string> {
  const local = presets.filter((preset) => preset.local === true);
  const hosted = presets.filter((preset) => preset.local !== true);
  return questions.choose(
    "Which provider do you want to use?",
    [
      ...hosted.map(({ id, name }) => ({ value: id, label: name })),
      ...local.map(({ id, name }) => ({ value: id, label: name, hint: "local, on this machine" })),
      { value: customId, label: "Another one", hint: "any OpenAI-compatible address" },
    ],
    { accepts: (typed) => readAddress(typed).outcome !== "none" },
  );
}

/** Asks until the answer is an address. Asks for confirmation when it had to be completed. */
async function askForAddress(questions: Questions, typed?: string): Promise<string> {
  for (let answer = typed; ; answer = undefined) {
    const address = readAddress(
      answer ??
        (await questions.text("Its address, such as https://models.example.com/v1:", {
          check: (text) => {
            const read = readAddress(text);
            return read.outcome === "none" ? read.problem : undefined;
          },
        })),
    );
    if (address.outcome === "address") return address.url;
    if (address.outcome === "none") continue;
    if (await questions.confirm(`Did you mean ${address.url}?`, true)) return address.url;
  }
}

function fromPreset(preset: Preset, catalog: Catalog): ChosenProvider {
  const { id, name, baseURL, local = false, keyVariables, defaultModel } = preset;
  const models = catalog.modelsOf(id);
  return { id, name, baseURL, isCustom: false, isLocal: local, keyVariables, models, defaultModel };
}

async function createCustomProvider(
  id: string,
  baseURL: string,
  questions: Questions,
): Promise<ChosenProvider> {
  const { hostname } = new URL(baseURL);
  const name =
    id !== customId
      ? id
      : await questions.text("A short name for it:", {
          suggestion: suggestName(hostname),
          check: checkProviderName,
        });
  const isLocal = isLoopback(baseURL);
  const nothing = { keyVariables: [], models: [], defaultModel: undefined };
  return { id: name, name, baseURL: baseURL.replace(/\/+$/, ""), isCustom: true, isLocal, ...nothing };
}

function checkProviderName(name: string): string | undefined {
  if (isKnownToken(name)) return "That looks like a key, not a name.";
  return /^[a-z\d][a-z\d._-]{0,99}$/.test(name) ? undefined : "Use lower-case letters, digits and - only.";
}

/** Suggests a name: `example` for `api.example.com`, `local` for an IP address. */
function suggestName(hostname: string): string {
  const labels = hostname.split(".").filter((label) => /^[a-z]/.test(label));
  return labels.at(-2) ?? labels[0] ?? "local";
}
