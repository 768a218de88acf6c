import type { Api } from "../../config/api.ts";
import type { Env } from "../../config/paths.ts";
import { isLoopback } from "../../base/loopback.ts";
import { isKnownToken } from "../../base/secrets/secret-forms.ts";
import { nearest } from "../../base/text/nearest.ts";
import { type Preset, presets } from "../../model/catalog/catalog.ts";
import type { Catalog, KnownModel } from "../../model/catalog/known-models.ts";
import type { Questions } from "../terminal/questions.ts";
import { findLocalServer } from "./local-servers.ts";
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
  { questions, catalog, env }: { questions: Questions; catalog: Catalog; env: Env },
): Promise<ChosenProvider> {
  const baseURL = given.baseURL === undefined ? undefined : await readBaseURL(given.baseURL);
  const answer = given.id ?? (baseURL === undefined ? await askForProvider(questions) : customId);
  const isAddress = given.id === undefined && readAddress(answer).outcome !== "none";
  if (isAddress) return createCustomProvider(customId, await askForAddress(questions, answer), questions);
  const id = answer;
  const preset = presets.find((one) => one.id === id);
  if (preset !== undefined && baseURL === undefined) return fromPreset(preset, catalog, env);
  if (preset === undefined && id !== customId && baseURL === undefined)
    throw new UsageError(
      `there is no provider "${id}"${suggestProvider(id)}; known: ${presets.map((one) => one.id).join(", ")}. Another one needs --base-url`,
      "setup",
    );
  return createCustomProvider(id, baseURL ?? (await askForAddress(questions)), questions);
}

function suggestProvider(word: string): string {
  const names = presets.flatMap(({ id, name }) => [id, name.toLowerCase()]);
  const near = nearest(word.toLowerCase(), names);
  const preset = presets.find(({ id, name }) => id === near || name.toLowerCase() === near);
  return preset === undefined ? "" : ` (did you mean ${preset.id}?)`;
}

async function readBaseURL(given: string): Promise<string> {
  const address = readAddress(given);
  if (address.outcome === "address") return addMissingPath(address.url);
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
    if (address.outcome === "address") return addMissingPath(address.url);
    if (address.outcome === "none") continue;
    if (await questions.confirm(`Did you mean ${address.url}?`, true)) return address.url;
  }
}

/** Time limit to find out whether a server answers below /v1. */
const pathLimitMs = 2_000;

/** Appends /v1 to an address without a path if the server lists its models there. */
async function addMissingPath(address: string): Promise<string> {
  if (new URL(address).pathname !== "/") return address;
  try {
    const signal = AbortSignal.timeout(pathLimitMs);
    const { status, headers } = await fetch(`${address}/v1/models`, { signal, redirect: "error" });
    const isPage = /text\/html/i.test(headers.get("content-type") ?? "");
    return status === 404 || isPage ? address : `${address}/v1`;
  } catch {
    return address;
  }
}

/** Creates the choice of a known provider. Programs on this machine may have another address, which a variable names. */
function fromPreset(preset: Preset, catalog: Catalog, env: Env): ChosenProvider {
  const { id, name, local = false, keyVariables, defaultModel } = preset;
  const models = catalog.modelsOf(id);
  const baseURL = local ? (findLocalServer(id, env)?.provider.baseURL ?? preset.baseURL) : preset.baseURL;
  const isCustom = baseURL !== preset.baseURL;
  return { id, name, baseURL, isCustom, isLocal: local, keyVariables, models, defaultModel };
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
