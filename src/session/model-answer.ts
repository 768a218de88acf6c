import { sleep } from "../base/async.ts";
import type { AgentError } from "../message/message.ts";
import type { Tokens } from "../message/part.ts";
import type { ModelRequest, Models } from "../model/model.ts";
import { decideRetry, type RetryPolicy } from "../model/retry.ts";

/** The text of one model call that is no part of the conversation. */
export type ModelAnswer =
  | { outcome: "answered"; text: string; tokens: Tokens; cost: number }
  | { outcome: "failed"; error: AgentError };

/** Asks for a text, again after passing failures. */
export async function askModel(
  deps: {
    models: Models;
    retryPolicy: RetryPolicy;
    /** Gets the text as it comes, of the first attempt only: what a later one says begins anew. */
    onText?: ((text: string) => Promise<void>) | undefined;
    onRetry?(error: AgentError, attempt: number, delayMs: number): Promise<void>;
  },
  request: ModelRequest,
): Promise<ModelAnswer> {
  for (let attempt = 1; ; attempt++) {
    const answer = await askOnce(deps.models, request, attempt === 1 ? deps.onText : undefined);
    if (answer.outcome === "answered" || request.signal.aborted) return answer;
    const decision = decideRetry(attempt, answer.error, {
      random: Math.random,
      now: Date.now(),
      policy: deps.retryPolicy,
    });
    if (!decision.retry) return { outcome: "failed", error: decision.error };
    await deps.onRetry?.(answer.error, attempt, decision.delayMs);
    await sleep(decision.delayMs, request.signal);
  }
}

async function askOnce(
  models: Models,
  request: ModelRequest,
  onText: ((text: string) => Promise<void>) | undefined,
): Promise<ModelAnswer> {
  let text = "";
  for await (const event of models.stream(request)) {
    if (event.type === "text-delta") {
      text += event.text;
      await onText?.(event.text);
    }
    if (event.type === "failed") return { outcome: "failed", error: event.error };
    if (event.type === "finish") {
      const cost = models.costOf(request.model, event.tokens);
      return { outcome: "answered", text, tokens: event.tokens, cost };
    }
  }
  const error = {
    code: "internal",
    message: "The model call ended without a result.",
    retryable: false,
  } as const;
  return { outcome: "failed", error };
}
