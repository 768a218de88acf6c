import { isRecord } from "../../base/text/record.ts";
import type { AgentError } from "../../message/message.ts";
import { presets } from "./catalog.ts";
import { followRedirects, readText } from "../connection.ts";
import { sendHttp } from "../http.ts";
import {
  fromAnswer,
  invalidResponse,
  isWebPage,
  ProviderFailure,
  redact,
  titleOf,
  toAgentError,
} from "../failure.ts";
import type { KnownModel } from "./known-models.ts";
import { toKnownModel } from "./listed-model.ts";
import type { Provider } from "./usable-providers.ts";

/** How long a server may take to list its models. */
const listingLimitMs = 10_000;
/** How long a server may take to answer a check. */
const checkLimitMs = 2_000;
/** How much of an answer is read, in bytes. */
const answerLimitBytes = 16 * 1024 * 1024;
/** Models that are kept of one provider. */
const modelsLimit = 1_000;
/** Models that are asked for one by one. */
const detailsLimit = 50;
/** Questions for details that are under way at once. */
const detailsAtOnce = 4;

export type ListedModels =
  | { outcome: "listed"; models: KnownModel[]; isCut: boolean }
  | { outcome: "failed"; message: string };

/** Asks a provider which models it has. Never rejects; takes ten seconds at most. */
export async function listModels(provider: Provider, signal: AbortSignal): Promise<ListedModels> {
  const timeout = AbortSignal.timeout(listingLimitMs);
  const ask: Ask = (url, body) => askJson(url, provider, AbortSignal.any([signal, timeout]), body);
  try {
    const entries = await entriesOf(provider, ask);
    const models = entries.flatMap((entry) => toKnownModel(entry) ?? []);
    return { outcome: "listed", models: models.slice(0, modelsLimit), isCut: models.length > modelsLimit };
  } catch (thrown) {
    if (timeout.aborted)
      return { outcome: "failed", message: `it did not answer within ${listingLimitMs / 1_000} s` };
    const { message } = toAgentError(thrown, { provider: provider.id, baseURL: provider.baseURL });
    return { outcome: "failed", message: redact(message, [provider.apiKey ?? ""].filter(Boolean)) };
  }
}

export type ProviderCheck =
  /** The ids of its models; empty where it does not list them. */
  { outcome: "answered"; models: readonly string[] } | { outcome: "failed"; error: AgentError };

/** Asks a provider once for its models, to see whether it answers and takes the key. Never rejects. */
export async function checkProvider(provider: Provider): Promise<ProviderCheck> {
  const { id, baseURL, apiKey } = provider;
  const signal = AbortSignal.timeout(checkLimitMs);
  try {
    const answer = await askJson(modelsAddress(provider), provider, signal, undefined);
    const models = listIn(answer).flatMap((entry) => toKnownModel(entry)?.id ?? []);
    return { outcome: "answered", models };
  } catch (thrown) {
    const error = toAgentError(thrown, { provider: id, baseURL });
    // A server without a list may serve its models all the same.
    if (error.code === "not-found") return { outcome: "answered", models: [] };
    const message = signal.aborted
      ? `${new URL(baseURL).host} did not answer within ${checkLimitMs / 1_000} s.`
      : redact(error.message, [apiKey ?? ""].filter(Boolean));
    return { outcome: "failed", error: { ...error, message } };
  }
}

function modelsAddress({ id, baseURL }: Provider): string {
  const isGithub = presets.find((preset) => preset.id === id)?.lists === "github";
  return isGithub ? `${new URL(baseURL).origin}/catalog/models` : `${baseURL.replace(/\/+$/, "")}/models`;
}

/** Gets JSON; posts a body where there is one. */
type Ask = (url: string, body?: Json) => Promise<unknown>;

/** Servers that say more of their models elsewhere are asked there; where they do not, the common way is left. */
async function entriesOf({ id, baseURL }: Provider, ask: Ask): Promise<unknown[]> {
  const base = baseURL.replace(/\/+$/, "");
  const { origin } = new URL(base);
  switch (presets.find((preset) => preset.id === id)?.lists) {
    case "ollama":
      return ollamaEntries(base.replace(/\/v1$/, ""), ask);
    case "lmstudio":
      return listIn(await ask(`${origin}/api/v0/models`).catch(() => ask(`${base}/models`)));
    case "llamacpp":
      return llamaEntries(base, ask);
    case "github":
      return listIn(await ask(`${origin}/catalog/models`));
    default:
      return listIn(await ask(`${base}/models`));
  }
}

/** Ollama tells a model's abilities and size only when asked for each. */
async function ollamaEntries(root: string, ask: Ask): Promise<unknown[]> {
  const [tags, running] = await Promise.all([ask(`${root}/api/tags`), ask(`${root}/api/ps`).catch(() => [])]);
  const names = listIn(tags).flatMap((entry) =>
    isRecord(entry) && typeof entry.name === "string" ? entry.name : [],
  );
  const loaded = new Map(
    listIn(running).flatMap((entry): [unknown, unknown][] =>
      isRecord(entry) ? [[entry.name, entry.context_length]] : [],
    ),
  );
  const entries: unknown[] = [];
  for (let start = 0; start < names.length; start += detailsAtOnce) {
    const some = names.slice(start, start + detailsAtOnce);
    const isAsked = start < detailsLimit;
    entries.push(
      ...(await Promise.all(
        some.map(async (name) => ({
          id: name,
          loaded_context_length: loaded.get(name),
          ...(isAsked && detailsOf(await showModel(root, name, ask))),
        })),
      )),
    );
  }
  return entries;
}

function showModel(root: string, model: string, ask: Ask): Promise<unknown> {
  return ask(`${root}/api/show`, { model }).catch(() => ({}));
}

/** What is set for the model (`num_ctx`) counts more than what it could take. */
function detailsOf(shown: unknown): Json {
  if (!isRecord(shown)) return {};
  const set = /^num_ctx\s+(\d+)/m.exec(typeof shown.parameters === "string" ? shown.parameters : "")?.[1];
  const info = isRecord(shown.model_info) ? shown.model_info : {};
  const possible = Object.entries(info).find(([key]) => key.endsWith(".context_length"))?.[1];
  return {
    capabilities: shown.capabilities,
    type: isEmbedding(shown.capabilities) ? "embedding" : undefined,
    context_length: set === undefined ? possible : Number(set),
  };
}

const isEmbedding = (capabilities: unknown): boolean =>
  Array.isArray(capabilities) && capabilities.includes("embedding") && !capabilities.includes("completion");

/** llama.cpp serves one model, and says at `/props` how large a context it was started with. */
async function llamaEntries(base: string, ask: Ask): Promise<unknown[]> {
  const [models, props] = await Promise.all([
    ask(`${base}/models`),
    ask(`${base.replace(/\/v1$/, "")}/props`).catch(() => ({})),
  ]);
  const settings =
    isRecord(props) && isRecord(props.default_generation_settings) ? props.default_generation_settings : {};
  const seen =
    isRecord(props) && isRecord(props.modalities)
      ? { capabilities: { vision: props.modalities.vision } }
      : {};
  return listIn(models).map((entry) =>
    isRecord(entry) ? { ...entry, ...seen, loaded_context_length: settings.n_ctx } : entry,
  );
}

/** Lists stand under `data`, under `models`, or bare. */
function listIn(answer: unknown): unknown[] {
  if (Array.isArray(answer)) return answer;
  const list = isRecord(answer) ? (answer.data ?? answer.models) : undefined;
  if (Array.isArray(list)) return list;
  throw new ProviderFailure(invalidResponse("the answer is no list of models", false));
}

/** Asks a provider with its key. Throws where it answers with anything but JSON. */
export async function askJson(
  url: string,
  provider: Provider,
  signal: AbortSignal,
  body: Json | undefined,
): Promise<unknown> {
  const headers = headersFor(provider);
  const request = body === undefined ? { headers, signal } : { ...posted(body, headers), signal };
  const answer = await followRedirects(sendHttp, new URL(url), request);
  const text = await readText(answer, answerLimitBytes);
  if (answer.status < 200 || answer.status >= 300)
    throw new ProviderFailure(fromAnswer({ ...answer, body: text, now: Date.now() }));
  if (isWebPage(answer, text)) {
    const message = `it answered with a web page${titleOf(text)}. Is the base URL right?`;
    throw new ProviderFailure(invalidResponse(message, false));
  }
  return parseJson(text);
}

function posted(body: Json, headers: Record<string, string>) {
  return {
    method: "POST" as const,
    headers: { ...headers, "content-type": "application/json" },
    body: [Buffer.from(JSON.stringify(body))],
  };
}

function parseJson(body: string): unknown {
  try {
    return JSON.parse(body);
  } catch {
    throw new ProviderFailure(invalidResponse("the answer is not JSON", false));
  }
}

/** Anthropic's list wants its own headers beside the usual one. */
function headersFor({ id, apiKey, config }: Provider): Record<string, string> {
  const headers: Record<string, string> = { accept: "application/json" };
  if (apiKey !== undefined) headers.authorization = `Bearer ${apiKey}`;
  if (apiKey !== undefined && id === "anthropic") {
    headers["x-api-key"] = apiKey;
    headers["anthropic-version"] = "2023-06-01";
  }
  return { ...headers, ...config.options?.headers };
}

type Json = Record<string, unknown>;
