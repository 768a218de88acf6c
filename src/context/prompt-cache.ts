import type { Config } from "../config/schema.ts";
import type { Message } from "../message/message.ts";
import type { Model } from "../model/model.ts";
import { sumContextTokens } from "./context-budget.ts";

const minuteMs = 60_000;
/** https://platform.claude.com/docs/en/build-with-claude/prompt-caching */
const markedLifeMs = 5 * minuteMs;
/** The longest time without a request that is usual: https://platform.openai.com/docs/guides/prompt-caching */
const automaticLifeMs = 10 * minuteMs;

/** Returns how long a provider is assumed to keep a prompt after its last use. */
function getCacheLifeMs({ cache }: Model, { prompt_cache: settings }: Config): number {
  if (settings?.life_minutes !== undefined) return settings.life_minutes * minuteMs;
  return cache === "marks" ? markedLifeMs : automaticLifeMs;
}

/** Returns when the model was last asked in the visible conversation; undefined if it was not. */
export function findLastRequestAt(messages: readonly Message[], { ref }: Model): number | undefined {
  const newest = messages.findLast(
    ({ info }) =>
      info.role === "assistant" &&
      info.model.provider === ref.provider &&
      info.model.model === ref.model &&
      sumContextTokens(info.tokens) > 0,
  );
  return newest?.info.time.created;
}

/** Returns whether the provider has probably dropped the conversation from its prompt cache. */
export function hasCacheExpired(messages: readonly Message[], model: Model, config: Config): boolean {
  const last = findLastRequestAt(messages, model);
  if (last === undefined || model.cache === "none") return false;
  return Date.now() - last >= getCacheLifeMs(model, config);
}

/** Returns whether changing earlier messages costs nothing, because no cache has them. */
export function isUncached(messages: readonly Message[], model: Model, config: Config): boolean {
  if (model.cache === "none" || findLastRequestAt(messages, model) === undefined) return true;
  return hasCacheExpired(messages, model, config);
}
