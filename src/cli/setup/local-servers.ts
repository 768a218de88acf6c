import type { Env } from "../../config/paths.ts";
import { type Preset, presets } from "../../model/catalog/catalog.ts";
import type { KnownModel } from "../../model/catalog/known-models.ts";
import { listModels } from "../../model/catalog/list-models.ts";
import { type Provider, usableProviders } from "../../model/catalog/usable-providers.ts";

/** Time limit to find out whether a server runs. */
const findLimitMs = 2_000;

/** A program that serves models on this machine. */
export interface LocalServer {
  readonly preset: Preset;
  readonly provider: Provider;
}

/** Servers with a port that few other programs use. */
const recognizable: ReadonlySet<string> = new Set(["ollama", "lmstudio"]);

/** What to do if a server has no models. */
const getModel: Readonly<Record<string, string>> = {
  ollama: "Get one, such as: ollama pull qwen3:8b",
  lmstudio: "Get one in the app, or with: lms get",
  llamacpp: "Start it with a model: llama-server --jinja -hf REPOSITORY",
  vllm: "Start it with a model: vllm serve MODEL",
};

export const isLocalPreset = (id: string): boolean =>
  presets.some((one) => one.id === id && one.local === true);

/** Returns the local program with this id at its address, which a variable may change. */
export function findLocalServer(id: string, env: Env): LocalServer | undefined {
  const preset = presets.find((one) => one.id === id && one.local === true);
  const provider = usableProviders({ config: { provider: { [id]: {} } }, env, credentials: {} }).get(id);
  return preset === undefined || provider === undefined ? undefined : { preset, provider };
}

/** Returns the local servers that answer. */
export async function findRunningServers(env: Env): Promise<LocalServer[]> {
  const all = presets.flatMap(({ id }) => findLocalServer(id, env) ?? []);
  const asked = all.map(async (server) => {
    const listed = await listModels(server.provider, AbortSignal.timeout(findLimitMs));
    const isFound =
      listed.outcome === "listed" && (listed.models.length > 0 || recognizable.has(server.preset.id));
    return isFound ? [server] : [];
  });
  return (await Promise.all(asked)).flat();
}

/** Lists how each local server is started. */
export function describeStarts(env: Env): string {
  const all = presets.flatMap(({ id }) => findLocalServer(id, env) ?? []);
  return all
    .map(
      ({ preset, provider }) =>
        `${preset.name} (${preset.startCommand}, ${new URL(provider.baseURL).origin})`,
    )
    .join(", ");
}

export const describeNoModels = ({ id, name }: Pick<Preset, "id" | "name">): string =>
  `${name} answers, but has no models. ${getModel[id] ?? ""}.`;

/** The model to suggest: the first that can call tools, else the first. */
export function suggestModel(models: readonly KnownModel[]): KnownModel | undefined {
  return (
    models.find(({ tools }) => tools === true) ?? models.find(({ tools }) => tools !== false) ?? models[0]
  );
}

/** Describes a model for a list. */
export function describeModel({ id, name, context, tools }: KnownModel): string {
  const facts = [
    ...(name === id ? [] : [id]),
    ...(context === undefined ? [] : [`${Math.round(context / 1024)}k context`]),
    ...(tools === false ? ["no tools"] : []),
  ];
  return facts.join(", ");
}
