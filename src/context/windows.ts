import type { Tokens } from "../message/part.ts";
import type { Model } from "../model/model.ts";
import type { OpenModels } from "../model/providers/providers.ts";
import type { StepOutcome } from "../conversation/step-outcome.ts";

/** How often to ask a server for an unknown window; some know it only after the model was loaded. */
const maxQuestions = 3;
/** Minimum estimated tokens at which the provider's count shows whether the prompt was truncated. */
const minConclusiveTokens = 2_000;
/** A lower count is a placeholder of the server. */
const minWindow = 1_024;
/** A count below this share of the estimate is low. */
const lowShare = 0.7;
/**
 * If the count grows by more than this share of the request's growth, it is only low and the prompt is not
 * truncated.
 */
const growthShare = 0.35;
/** A server that once counted this factor more does not truncate: it excludes cached tokens from its count. */
const cachedFactor = 2;

/** A request whose count was lower than estimated. */
interface LowCount {
  readonly estimated: number;
  readonly counted: number;
}

/** Measurements of one model's window. */
interface WindowState {
  tokens?: number;
  questions: number;
  mostCounted: number;
  low?: LowCount | undefined;
}

/**
 * Context windows detected in this session: reported by the server, found in a refusal, or concluded from
 * token counts of a truncated prompt. They override configured and listed ones until the session is closed.
 */
export class ContextWindows {
  readonly #states = new Map<string, WindowState>();

  /** Returns the model with the detected window. */
  applyTo(model: Model): Model {
    const { tokens } = this.#getState(model);
    if (tokens === undefined) return model;
    const { input, ...limit } = model.limit;
    return {
      ...model,
      limit: { ...limit, context: tokens, ...(input !== undefined && { input: Math.min(input, tokens) }) },
    };
  }

  /** Like {@link applyTo}, but first asks a local server whose window is not configured. */
  async settle(model: Model, models: OpenModels, signal: AbortSignal): Promise<Model> {
    const state = this.#getState(model);
    if (state.tokens === undefined && state.questions < maxQuestions && models.mayAskWindow(model)) {
      state.questions++;
      const tokens = await models.askWindow(model, signal);
      if (tokens !== undefined) state.tokens = tokens;
    }
    return this.applyTo(model);
  }

  /** Updates the window from a finished call. Returns a notice for the user. */
  async learn(
    model: Model,
    { estimated, outcome }: { estimated: number; outcome: StepOutcome },
    models: OpenModels,
    signal: AbortSignal,
  ): Promise<string | undefined> {
    if (outcome.end === "failed") return this.#learnFromRefusal(model, outcome.error.window);
    const counted = getCount(outcome.tokens);
    if (!this.#isTruncated(model, { estimated, counted })) return undefined;
    const state = this.#getState(model);
    const reported = await models.askWindow(model, signal);
    const tokens =
      reported !== undefined && reported < estimated
        ? Math.max(reported, state.mostCounted)
        : state.mostCounted;
    if (tokens >= (this.applyTo(model).limit.context ?? Number.POSITIVE_INFINITY)) return undefined;
    state.tokens = tokens;
    return describeTruncation(model, { estimated, counted }, tokens);
  }

  #learnFromRefusal(model: Model, tokens: number | undefined): string | undefined {
    const { context } = this.applyTo(model).limit;
    if (tokens === undefined || (context !== undefined && tokens >= context)) return undefined;
    this.#getState(model).tokens = tokens;
    return describeReportedWindow(model, tokens, context);
  }

  /** Whether the provider counted too little twice in a row, and did not count more for a larger request. */
  #isTruncated(model: Model, count: LowCount): boolean {
    const state = this.#getState(model);
    const before = state.low;
    const isLow =
      count.counted >= minWindow &&
      count.estimated >= minConclusiveTokens &&
      count.counted < lowShare * count.estimated &&
      count.counted * cachedFactor >= state.mostCounted;
    state.low = isLow ? count : undefined;
    state.mostCounted = Math.max(state.mostCounted, count.counted);
    if (!isLow || before === undefined) return false;
    const growth = Math.max(0, count.estimated - before.estimated);
    return count.counted - before.counted <= growthShare * growth;
  }

  #getState({ ref }: Model): WindowState {
    const key = JSON.stringify([ref.provider, ref.model]);
    const state = this.#states.get(key) ?? { questions: 0, mostCounted: 0 };
    this.#states.set(key, state);
    return state;
  }
}

const getCount = ({ input, cache }: Tokens): number => input + cache.read + cache.write;

const setLimit = ({ ref }: Model, tokens: number): string =>
  `set "limit": { "context": ${tokens} } for ${ref.model} under provider.${ref.provider}.models`;

function describeReportedWindow(model: Model, tokens: number, believed: number | undefined): string {
  const before = believed === undefined ? "its context was unknown" : `${believed} were configured or listed`;
  return `The server reports a context of ${tokens} tokens for ${model.name}; ${before}. This session now uses ${tokens}. To make that permanent, ${setLimit(model, tokens)}, or start the server with a larger context.`;
}

function describeTruncation(model: Model, { estimated, counted }: LowCount, tokens: number): string {
  return `The server silently truncates the prompt at about ${tokens} tokens: ${model.name} read ${counted} of about ${estimated} tokens. This session now uses a context of ${tokens}. Start the server with a larger context (Ollama: OLLAMA_CONTEXT_LENGTH or num_ctx; LM Studio: Context Length; llama.cpp: -c), or ${setLimit(model, tokens)}.`;
}
