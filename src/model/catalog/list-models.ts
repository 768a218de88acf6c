import { isRecord } from "../../base/text/record.ts";
import type { AgentError } from "../../message/message.ts";
import { presets } from "./catalog.ts";
import { checkBaseUrl } from "../endpoint.ts";
import { followRedirects, readText } from "../redirects.ts";
import { type HttpAnswer, sendHttp } from "../http.ts";
import {
  parseErrorAnswer,
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

/** Timeout to list models. */
const listingLimitMs = 10_000;
/** Timeout of a check. */
const checkLimitMs = 2_000;
/** Maximum size of an answer, in bytes. */
const answerLimitBytes = 16 * 1024 * 1024;
/** Maximum number of models per provider. */
const modelsLimit = 1_000;
/** Maximum number of models whose details are requested. */
const detailsLimit = 50;
/** Concurrent requests for details. */
const detailsConcurrency = 4;

export type ListedModels =
  | { outcome: "listed"; models: KnownModel[]; isCut: boolean }
  | { outcome: "failed"; message: string };

/** Requests a provider's models. Never rejects; takes at most ten seconds. */
export async function listModels(provider: Provider, signal: AbortSignal): Promise<ListedModels> {
  const timeout = AbortSignal.timeout(listingLimitMs);
  const ask: Ask = (url, body) => askJson(url, provider, AbortSignal.any([signal, timeout]), body);
  try {
    const entries = await listEntries(provider, ask);
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
  /** Model ids; empty if the provider does not list them. */
  { outcome: "answered"; models: readonly string[] } | { outcome: "failed"; error: AgentError };

/** Requests a provider's models once to check that it answers and accepts the key. Never rejects. */
export async function checkProvider(provider: Provider): Promise<ProviderCheck> {
  const { id, baseURL, apiKey } = provider;
  const fault = checkBaseUrl({ provider: id, baseURL });
  if (fault !== undefined) return { outcome: "failed", error: fault };
  const signal = AbortSignal.timeout(checkLimitMs);
  try {
    const answer = await askJson(modelsAddress(provider), provider, signal, undefined);
    const models = parseList(answer).flatMap((entry) => toKnownModel(entry)?.id ?? []);
    return { outcome: "answered", models };
  } catch (thrown) {
    const error = toAgentError(thrown, { provider: id, baseURL });
    // A server without a model list may still serve models.
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

/** Sends a GET request, or a POST request with the body. */
type Ask = (url: string, body?: Json) => Promise<unknown>;

/** Requests the list from the provider's own API if it has more details there, and else from `/models`. */
async function listEntries({ id, baseURL }: Provider, ask: Ask): Promise<unknown[]> {
  const base = baseURL.replace(/\/+$/, "");
  const { origin } = new URL(base);
  switch (presets.find((preset) => preset.id === id)?.lists) {
    case "ollama":
      return ollamaEntries(base.replace(/\/v1$/, ""), ask);
    case "lmstudio":
      return parseList(await ask(`${origin}/api/v0/models`).catch(() => ask(`${base}/models`)));
    case "llamacpp":
      return llamaEntries(base, ask);
    case "github":
      return parseList(await ask(`${origin}/catalog/models`));
    default:
      return parseList(await ask(`${base}/models`));
  }
}

/** Ollama reports capabilities and context length only per model. */
async function ollamaEntries(root: string, ask: Ask): Promise<unknown[]> {
  const [tags, running] = await Promise.all([ask(`${root}/api/tags`), ask(`${root}/api/ps`).catch(() => [])]);
  const names = parseList(tags).flatMap((entry) =>
    isRecord(entry) && typeof entry.name === "string" ? entry.name : [],
  );
  const loaded = new Map(
    parseList(running).flatMap((entry): [unknown, unknown][] =>
      isRecord(entry) ? [[entry.name, entry.context_length]] : [],
    ),
  );
  const entries: unknown[] = [];
  for (let start = 0; start < names.length; start += detailsConcurrency) {
    const some = names.slice(start, start + detailsConcurrency);
    const isAsked = start < detailsLimit;
    entries.push(
      ...(await Promise.all(
        some.map(async (name) => ({
          id: name,
          loaded_context_length: loaded.get(name),
          ...(isAsked && parseOllamaDetails(await showModel(root, name, ask))),
        })),
      )),
    );
  }
  return entries;
}

function showModel(root: string, model: string, ask: Ask): Promise<unknown> {
  return ask(`${root}/api/show`, { model }).catch(() => ({}));
}

/** Parses Ollama's details. `num_ctx` takes precedence over the model's maximum. */
function parseOllamaDetails(shown: unknown): Json {
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

/** llama.cpp serves one model and reports its context window at `/props`. */
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
  return parseList(models).map((entry) =>
    isRecord(entry) ? { ...entry, ...seen, loaded_context_length: settings.n_ctx } : entry,
  );
}

/** Returns the list in `data` or `models`, or the answer itself. */
function parseList(answer: unknown): unknown[] {
  if (Array.isArray(answer)) return answer;
  const list = isRecord(answer) ? (answer.data ?? answer.models) : undefined;
  if (Array.isArray(list)) return list;
  throw new ProviderFailure(invalidResponse("the answer is not a list of models", false));
}

/** Sends a request with the provider's key. Throws unless the answer is JSON. */
export async function askJson(
  url: string,
  provider: Provider,
  signal: AbortSignal,
  body: Json | undefined,
): Promise<unknown> {
  const { answer, text } = await sendJson(url, provider, signal, body);
  if (answer.status < 200 || answer.status >= 300)
    throw new ProviderFailure(parseErrorAnswer({ ...answer, body: text, now: Date.now() }));
  if (isWebPage(answer, text)) {
    const message = `it answered with a web page${titleOf(text)}. Is the base URL right?`;
    throw new ProviderFailure(invalidResponse(message, false));
  }
  return parseJson(text);
}

/** Sends a request with the provider's key and returns the answer, whatever its status. */
export async function sendJson(
  url: string,
  provider: Provider,
  signal: AbortSignal,
  body: Json | undefined,
): Promise<{ answer: HttpAnswer; text: string }> {
  const headers = headersFor(provider);
  const request = body === undefined ? { headers, signal } : { ...createPost(body, headers), signal };
  const answer = await followRedirects(sendHttp, new URL(url), request);
  return { answer, text: await readText(answer, answerLimitBytes) };
}

function createPost(body: Json, headers: Record<string, string>) {
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

/** Returns the headers. Servers with Anthropic's API require two more. */
function headersFor(provider: Provider): Record<string, string> {
  const { id, apiKey, config } = provider;
  const headers: Record<string, string> = { accept: "application/json" };
  if (apiKey !== undefined) headers.authorization = `Bearer ${apiKey}`;
  if (apiKey !== undefined && (id === "anthropic" || hasMessages(provider))) {
    headers["x-api-key"] = apiKey;
    headers["anthropic-version"] = "2023-06-01";
  }
  return { ...headers, ...config.options?.headers };
}

const hasMessages = ({ config: { api, models = {} } }: Provider): boolean =>
  api === "messages" || Object.values(models).some((model) => model.api === "messages");

type Json = Record<string, unknown>;
