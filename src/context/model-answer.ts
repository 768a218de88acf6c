import { sleep } from "../base/async.ts";
import type { AgentError, FinishReason } from "../message/message.ts";
import type { Tokens } from "../message/part.ts";
import type { ModelRequest, Models } from "../model/model.ts";
import { decideRetry, type RetryPolicy } from "../model/retry.ts";

/** The result of a model call outside the conversation. */
export type ModelAnswer =
  | { outcome: "answered"; text: string; reason: FinishReason; tokens: Tokens; cost: number }
  | { outcome: "failed"; error: AgentError };

/** Asks for a text and retries temporary failures. */
export async function askModel(
  deps: {
    models: Models;
    retryPolicy: RetryPolicy;
    /** Receives the text as it streams, only in the first attempt: a retry would start over. */
    onText?: ((text: string) => void) | undefined;
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
  onText: ((text: string) => void) | undefined,
): Promise<ModelAnswer> {
  let text = "";
  const end = await models.call(request, (event) => {
    if (event.type !== "text-delta") return;
    text += event.text;
    onText?.(event.text);
  });
  if (end.type === "failed") return { outcome: "failed", error: end.error };
  const { tokens, reason } = end;
  return { outcome: "answered", text, reason, tokens, cost: models.costOf(request.model, tokens) };
}
