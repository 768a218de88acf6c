import { isRecord } from "../../base/text/record.ts";
import { presets } from "./catalog.ts";
import { askJson } from "./list-models.ts";
import type { Provider } from "./usable-providers.ts";

/** Maximum time to query the context window. */
const limitMs = 1_000;

/** Sends a GET request, or a POST request with the body. Returns undefined on errors. */
type Ask = (path: string, body?: Record<string, unknown>) => Promise<unknown>;

interface ServerModel {
  readonly ask: Ask;
  readonly model: string;
}

/** Queries the window in tokens. Any other value means that the server does not report it. */
type WindowQuery = (server: ServerModel) => Promise<unknown>;

/** Ollama reports it for loaded models and for models with `num_ctx`. */
const ollamaQueries: readonly WindowQuery[] = [
  async ({ ask, model }) => findEntry(await ask("/api/ps"), model)?.context_length,
  async ({ ask, model }) => {
    const shown = await ask("/api/show", { model });
    const parameters = isRecord(shown) ? shown.parameters : undefined;
    return Number(/^num_ctx\s+(\d+)/m.exec(typeof parameters === "string" ? parameters : "")?.[1]);
  },
];

/** LM Studio reports it for loaded models. The maximum is not used: the loaded window is often smaller. */
const lmStudioQueries: readonly WindowQuery[] = [
  async ({ ask, model }) => findEntry(await ask("/api/v0/models"), model)?.loaded_context_length,
];

/** The router of llama.cpp reports it per model. */
const llamaCppQueries: readonly WindowQuery[] = [
  async ({ ask, model }) => {
    const props = await ask(`/props?model=${encodeURIComponent(model)}`);
    const settings = isRecord(props) ? props.default_generation_settings : undefined;
    return isRecord(settings) ? settings.n_ctx : undefined;
  },
];

const listQueries: readonly WindowQuery[] = [
  async ({ ask, model }) => {
    const entry = findEntry(await ask("/v1/models"), model);
    const { n_ctx: loaded } = isRecord(entry?.meta) ? entry.meta : {};
    return entry?.loaded_context_length ?? entry?.max_model_len ?? loaded ?? entry?.context_length;
  },
];

/** For servers without a preset. */
const anyServerQueries = [
  ...ollamaQueries.slice(0, 1),
  ...lmStudioQueries,
  ...llamaCppQueries,
  ...listQueries,
];

const queriesByPreset: Readonly<Record<string, readonly WindowQuery[]>> = {
  ollama: ollamaQueries,
  lmstudio: lmStudioQueries,
  llamacpp: [...llamaCppQueries, ...listQueries],
  vllm: listQueries,
};

/**
 * Returns the context window that a server has loaded for a model, in tokens; undefined if it does not report one within
 * a second. Never rejects.
 */
export async function askWindow(
  provider: Provider,
  model: string,
  signal: AbortSignal,
): Promise<number | undefined> {
  const root = provider.baseURL.replace(/\/+$/, "").replace(/\/v1$/, "");
  const limit = AbortSignal.any([signal, AbortSignal.timeout(limitMs)]);
  const ask: Ask = (path, body) => askJson(`${root}${path}`, provider, limit, body).catch(() => undefined);
  const id = presets.find((preset) => preset.id === provider.id)?.id ?? "";
  const queries = (Object.hasOwn(queriesByPreset, id) ? queriesByPreset[id] : undefined) ?? anyServerQueries;
  const answers = await Promise.all(queries.map((question) => question({ ask, model })));
  return answers.find((tokens): tokens is number => typeof tokens === "number" && tokens > 0);
}

/** Finds a model in a list. Ollama lists models without a tag as `:latest`. */
function findEntry(answer: unknown, model: string): Record<string, unknown> | undefined {
  const list = isRecord(answer) ? (answer.data ?? answer.models) : undefined;
  const names = new Set<unknown>([model, `${model}:latest`]);
  return Array.isArray(list)
    ? list.find(
        (entry) =>
          isRecord(entry) && [entry.id, entry.name, entry.model, entry.key].some((name) => names.has(name)),
      )
    : undefined;
}
