import type { Tokens } from "../message/part.ts";
import type { Model } from "../model/model.ts";
import type { OpenModels } from "../model/providers/providers.ts";
import type { StepOutcome } from "../conversation/step-outcome.ts";

/** How often a server is asked for a window that it did not say: some know it only once the model is loaded. */
const mostQuestions = 3;
/** Estimated tokens of a request from which on the provider's count tells whether all of it was read. */
const leastTelling = 2_000;
/** No server has so small a window: a lower count is a placeholder, not a cut. */
const leastWindow = 1_024;
/** Share of the estimate below which a count is too low. */
const lowShare = 0.7;
/** A count that grows by more than this share of what a request grew by is a low count, not a cut. */
const growthShare = 0.35;
/** A server that once read this many times as much does not cut: it leaves what it had cached out of its count. */
const cachedFactor = 2;

/** A request that was counted lower than estimated. */
interface LowCount {
  readonly estimated: number;
  readonly counted: number;
}

/** What is known of one model's window beside its configuration. */
interface Known {
  tokens?: number;
  questions: number;
  mostCounted: number;
  low?: LowCount | undefined;
}

/**
 * Windows of models as this session found them out: from the server, from a refusal, from a count of tokens that shows
 * that the prompt was cut. They replace configured and listed ones until the session is closed.
 */
export class Windows {
  readonly #known = new Map<string, Known>();

  /** The model with the window that was found out. */
  applyTo(model: Model): Model {
    const { tokens } = this.#of(model);
    if (tokens === undefined) return model;
    const { input, ...limit } = model.limit;
    return {
      ...model,
      limit: { ...limit, context: tokens, ...(input !== undefined && { input: Math.min(input, tokens) }) },
    };
  }

  /** The same, after asking a server on this machine whose window is not configured. */
  async settle(model: Model, models: OpenModels, signal: AbortSignal): Promise<Model> {
    const known = this.#of(model);
    if (known.tokens === undefined && known.questions < mostQuestions && models.mayAskWindow(model)) {
      known.questions++;
      const tokens = await models.askWindow(model, signal);
      if (tokens !== undefined) known.tokens = tokens;
    }
    return this.applyTo(model);
  }

  /** Learns from how a call ended. Returns what the user must know. */
  async learn(
    model: Model,
    { estimated, outcome }: { estimated: number; outcome: StepOutcome },
    models: OpenModels,
    signal: AbortSignal,
  ): Promise<string | undefined> {
    if (outcome.end === "failed") return this.#learnFromRefusal(model, outcome.error.window);
    const counted = countOf(outcome.tokens);
    if (!this.#isCut(model, { estimated, counted })) return undefined;
    const known = this.#of(model);
    const said = await models.askWindow(model, signal);
    const tokens =
      said !== undefined && said < estimated ? Math.max(said, known.mostCounted) : known.mostCounted;
    if (tokens >= (this.applyTo(model).limit.context ?? Number.POSITIVE_INFINITY)) return undefined;
    known.tokens = tokens;
    return cutText(model, { estimated, counted }, tokens);
  }

  #learnFromRefusal(model: Model, tokens: number | undefined): string | undefined {
    const { context } = this.applyTo(model).limit;
    if (tokens === undefined || (context !== undefined && tokens >= context)) return undefined;
    this.#of(model).tokens = tokens;
    return statedText(model, tokens, context);
  }

  /** Whether the provider read less than it was sent, twice in a row, and not more when it was sent more. */
  #isCut(model: Model, count: LowCount): boolean {
    const known = this.#of(model);
    const before = known.low;
    const isLow =
      count.counted >= leastWindow &&
      count.estimated >= leastTelling &&
      count.counted < lowShare * count.estimated &&
      count.counted * cachedFactor >= known.mostCounted;
    known.low = isLow ? count : undefined;
    known.mostCounted = Math.max(known.mostCounted, count.counted);
    if (!isLow || before === undefined) return false;
    const growth = Math.max(0, count.estimated - before.estimated);
    return count.counted - before.counted <= growthShare * growth;
  }

  #of({ ref }: Model): Known {
    const key = JSON.stringify([ref.provider, ref.model]);
    const known = this.#known.get(key) ?? { questions: 0, mostCounted: 0 };
    this.#known.set(key, known);
    return known;
  }
}

const countOf = ({ input, cache }: Tokens): number => input + cache.read + cache.write;

const setLimit = ({ ref }: Model, tokens: number): string =>
  `set "limit": { "context": ${tokens} } for ${ref.model} under provider.${ref.provider}.models`;

function statedText(model: Model, tokens: number, believed: number | undefined): string {
  const before = believed === undefined ? "its context was unknown" : `${believed} were configured or listed`;
  return `The server says that the context of ${model.name} holds ${tokens} tokens; ${before}. ${tokens} count from now on in this session. To keep that, ${setLimit(model, tokens)}, or start the server with a larger context.`;
}

function cutText(model: Model, { estimated, counted }: LowCount, tokens: number): string {
  return `The server cuts the prompt at about ${tokens} tokens without saying so: ${model.name} read ${counted} of about ${estimated} tokens. ${tokens} count as its context from now on in this session. Start the server with a larger context (Ollama: OLLAMA_CONTEXT_LENGTH or num_ctx; LM Studio: Context Length; llama.cpp: -c), or ${setLimit(model, tokens)}.`;
}
