import type { SentRequest } from "../message/message.ts";
import type { Config } from "../config/schema.ts";
import type { Model, Models } from "../model/model.ts";

/** US dollars above which a notice is shown unless configured otherwise. */
const defaultLimit = 0.5;
const minuteMs = 60_000;
const hourMs = 60 * minuteMs;

export interface Reread {
  readonly sent: SentRequest;
  readonly model: Model;
  /** Milliseconds since the last request; undefined if there was none. */
  readonly idleMs: number | undefined;
}

/** Returns a notice before a request that reads an expensive conversation again; undefined if none is due. */
export function createRereadNotice(
  { sent, model, idleMs }: Reread,
  config: Config,
  models: Pick<Models, "costOf">,
): string | undefined {
  const limit = config.prompt_cache?.notice_above ?? defaultLimit;
  if (limit === false || idleMs === undefined || sent.lost === undefined) return undefined;
  const isWritten = model.cache === "marks";
  const cost = models.costOf(model, {
    input: isWritten ? 0 : sent.lost,
    output: 0,
    reasoning: 0,
    cache: { read: 0, write: isWritten ? sent.lost : 0 },
  });
  if (cost <= limit) return undefined;
  const tokens = Math.round(sent.lost).toLocaleString("en-US");
  return `The last request was ${describeTime(idleMs)} ago, so the provider has probably dropped the conversation from its prompt cache. This request reads about ${tokens} tokens again, for about $${cost.toFixed(2)}. A new session starts without them; /compact makes later requests smaller. This notice appears once per session.`;
}

function describeTime(ms: number): string {
  return ms < 2 * hourMs ? `${Math.round(ms / minuteMs)} minutes` : `${Math.round(ms / hourMs)} hours`;
}
