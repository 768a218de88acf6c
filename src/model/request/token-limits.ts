import { estimateRequest } from "../../message/estimate-request.ts";
import type { AgentError } from "../../message/message.ts";
import type { ModelRequest } from "../model.ts";

/** Default limit of output tokens. */
const outputTokensLimit = 32_000;
/** Minimum of requested output tokens: the provider decides whether they fit. */
const minOutputTokens = 1_024;
/** Tokens left free in addition to prompt and answer. */
const windowMargin = 256;
/** Factor by which an uncorrected estimate may be too low. */
const estimateError = 1.2;

/** Returns the limit of output tokens with which prompt and answer fit into the window. */
export function limitOutput(request: ModelRequest): number | undefined {
  if (request.maxOutputTokens !== undefined) return request.maxOutputTokens;
  const { context = Number.POSITIVE_INFINITY, output } = request.model.limit;
  if (output === undefined) return undefined;
  const prompt = request.promptTokens ?? estimateRequest(request) * estimateError;
  const left = Math.floor(context - prompt - windowMargin);
  return Math.min(output, outputTokensLimit, Math.max(left, minOutputTokens));
}

/** Larger contexts, in tokens, always fit instructions and tools. */
const smallContextLimit = 16_384;
/** Generous: English and JSON have about four characters per token. */
const maxCharactersPerToken = 5;

/**
 * Returns an error if instructions and tools alone exceed the context: local servers are often started with too little,
 * and some silently truncate the prompt. The estimate is low, so that no request that fits is rejected.
 */
export function checkContextSize({ model, system, tools }: ModelRequest): AgentError | undefined {
  const { context } = model.limit;
  if (context === undefined || context > smallContextLimit) return undefined;
  const length = system.join("").length + JSON.stringify(tools).length;
  const tokens = Math.floor(length / maxCharactersPerToken);
  if (tokens < context) return undefined;
  return {
    code: "bad-request",
    message: `The context of ${model.ref.model} holds ${context} tokens, but instructions and tools alone take more than ${tokens}. Start the server, or load the model, with a larger context; where it has one, correct "limit.context" in the configuration or run "fairlead models --discover".`,
    retryable: false,
  };
}

/** Share of the output limit that each effort may use for thinking. */
const budgetShares = { none: 0, minimal: 0.02, low: 0.1, medium: 0.3, high: 0.6, xhigh: 0.9, max: 1 };
/** https://platform.claude.com/docs/en/build-with-claude/extended-thinking */
const minBudget = 1_024;

type Effort = keyof typeof budgetShares;
export const isEffort = (value: unknown): value is Effort =>
  typeof value === "string" && Object.hasOwn(budgetShares, value);

/**
 * Returns the tokens to think with, which count toward the limit of output tokens; 0 to not think. The rest of the answer
 * keeps at least as much as the smallest budget.
 */
export function thinkingBudget(effort: Effort, limit: number): number {
  const budget = Math.min(Math.max(Math.round(limit * budgetShares[effort]), minBudget), limit - minBudget);
  return effort === "none" || budget < minBudget ? 0 : budget;
}
