import { sentenceOf } from "../base/errors.ts";
import type { Config } from "../config/schema.ts";
import type { AgentError } from "../message/message.ts";

/** When model calls are retried. Times in milliseconds. */
export interface RetryPolicy {
  /** Total attempts, including the first. */
  readonly attempts: number;
  readonly firstDelayMs: number;
  /** The maximum delay of the exponential backoff. */
  readonly maxDelayMs: number;
  /** The maximum wait that a provider may request. Beyond it the turn fails immediately and says when to retry. */
  readonly maxWaitMs: number;
}

export const defaultRetryPolicy: RetryPolicy = {
  attempts: 5,
  firstDelayMs: 2_000,
  maxDelayMs: 30_000,
  maxWaitMs: 60_000,
};

/** Random share added to a delay, so that many clients do not retry at once. */
const jitter = 0.25;

/** Returns the default policy with the configured `retry` values. */
export function toRetryPolicy(retry: Config["retry"]): RetryPolicy {
  return {
    ...defaultRetryPolicy,
    attempts: retry?.attempts ?? defaultRetryPolicy.attempts,
    firstDelayMs: retry?.delay_ms ?? defaultRetryPolicy.firstDelayMs,
    maxWaitMs: retry?.max_wait_ms ?? defaultRetryPolicy.maxWaitMs,
  };
}

export type RetryDecision = { retry: true; delayMs: number } | { retry: false; error: AgentError };

export interface RetryContext {
  /** From 0 to below 1. */
  readonly random: () => number;
  /** Milliseconds since 1970. */
  readonly now: number;
  readonly policy?: RetryPolicy;
}

/** Decides whether and when to retry after the failed `attempt` (counted from 1). */
export function decideRetry(
  attempt: number,
  error: AgentError,
  { random, now, policy = defaultRetryPolicy }: RetryContext,
): RetryDecision {
  if (!error.retryable) return { retry: false, error };
  if (attempt >= policy.attempts) {
    return { retry: false, error: { ...error, message: `${error.message} (tried ${attempt} times)` } };
  }
  if (error.retryAfterMs === undefined) return { retry: true, delayMs: backOff(attempt, random(), policy) };
  if (error.retryAfterMs <= policy.maxWaitMs) return { retry: true, delayMs: error.retryAfterMs };
  return { retry: false, error: { ...error, message: tooLongMessage(error, error.retryAfterMs, now) } };
}

function backOff(attempt: number, random: number, policy: RetryPolicy): number {
  const delayMs = policy.firstDelayMs * 2 ** (attempt - 1) * (1 + jitter * random);
  return Math.round(Math.min(delayMs, policy.maxDelayMs));
}

function tooLongMessage(error: AgentError, waitMs: number, now: number): string {
  const when = new Date(now + waitMs);
  const at = Number.isNaN(when.getTime()) ? "" : ` (after ${when.toISOString().replace(/\.\d+Z$/, "Z")})`;
  return `${sentenceOf(error.message)} The provider asks to wait ${formatDuration(waitMs)}${at}; try again then or choose another model.`;
}

function formatDuration(ms: number): string {
  const minutes = Math.ceil(ms / 60_000);
  if (minutes < 120) return `${minutes} minutes`;
  const hours = Math.ceil(minutes / 60);
  return hours < 48 ? `${hours} hours` : `${Math.ceil(hours / 24)} days`;
}
