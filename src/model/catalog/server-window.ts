import { isRecord } from "../../base/text/record.ts";
import { presets } from "./catalog.ts";
import { askJson } from "./list-models.ts";
import type { Provider } from "./usable-providers.ts";

/** How long a server may take to say how large a context it has. */
const limitMs = 1_000;

/** Gets JSON, or posts it; undefined where the server does not answer it. */
type Ask = (path: string, body?: Record<string, unknown>) => Promise<unknown>;

interface Server {
  readonly ask: Ask;
  readonly model: string;
}

/** Answers with tokens; anything else means that the server does not say. */
type Question = (server: Server) => Promise<unknown>;

/** Ollama says it of models that are loaded, and of those that have it set. */
const ofOllama: readonly Question[] = [
  async ({ ask, model }) => entryOf(await ask("/api/ps"), model)?.context_length,
  async ({ ask, model }) => {
    const shown = await ask("/api/show", { model });
    const parameters = isRecord(shown) ? shown.parameters : undefined;
    return Number(/^num_ctx\s+(\d+)/m.exec(typeof parameters === "string" ? parameters : "")?.[1]);
  },
];

/** What could be loaded is larger than what is: a model that is not loaded has no answer. */
const ofLmStudio: readonly Question[] = [
  async ({ ask, model }) => entryOf(await ask("/api/v0/models"), model)?.loaded_context_length,
];

/** A router of llama.cpp has one for each model. */
const ofLlamaCpp: readonly Question[] = [
  async ({ ask, model }) => {
    const props = await ask(`/props?model=${encodeURIComponent(model)}`);
    const settings = isRecord(props) ? props.default_generation_settings : undefined;
    return isRecord(settings) ? settings.n_ctx : undefined;
  },
];

const ofList: readonly Question[] = [
  async ({ ask, model }) => {
    const entry = entryOf(await ask("/v1/models"), model);
    const { n_ctx: loaded } = isRecord(entry?.meta) ? entry.meta : {};
    return entry?.loaded_context_length ?? entry?.max_model_len ?? loaded ?? entry?.context_length;
  },
];

/** A server without a preset may be any of these. */
const ofAny = [...ofOllama.slice(0, 1), ...ofLmStudio, ...ofLlamaCpp, ...ofList];

const questions: Readonly<Record<string, readonly Question[]>> = {
  ollama: ofOllama,
  lmstudio: ofLmStudio,
  llamacpp: [...ofLlamaCpp, ...ofList],
  vllm: ofList,
};

/**
 * Asks a server for the context that it has loaded for a model, in tokens. Undefined where it does not say within a
 * second. Never rejects.
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
  const asked = (Object.hasOwn(questions, id) ? questions[id] : undefined) ?? ofAny;
  const answers = await Promise.all(asked.map((question) => question({ ask, model })));
  return answers.find((tokens): tokens is number => typeof tokens === "number" && tokens > 0);
}

/** The entry of a model in a list of models. Ollama leaves out `:latest`. */
function entryOf(answer: unknown, model: string): Record<string, unknown> | undefined {
  const list = isRecord(answer) ? (answer.data ?? answer.models) : undefined;
  const names = new Set<unknown>([model, `${model}:latest`]);
  return Array.isArray(list)
    ? list.find(
        (entry) =>
          isRecord(entry) && [entry.id, entry.name, entry.model, entry.key].some((name) => names.has(name)),
      )
    : undefined;
}
