import type { Message } from "../message/message.ts";
import { addTokens, noTokens } from "../conversation/turn-result.ts";
import type { Tokens } from "../message/part.ts";
import { isCommandMessage } from "../conversation/checkpoints.ts";

/** What some model calls used and cost. */
export interface ModelUsage {
  readonly calls: number;
  readonly tokens: Tokens;
  /** US dollars; 0 where prices are unknown. */
  readonly cost: number;
}

/** Adds up model calls under names. */
export class Stats {
  readonly #byName = new Map<string, ModelUsage>();

  /** What is no answer of a model counts nothing. */
  add(name: string, { info, ...message }: Message): void {
    if (info.role === "assistant" && !isCommandMessage({ info, ...message })) this.addCall(name, info);
  }

  /** One that is no message, as that for a title. */
  addCall(name: string, call: { tokens: Tokens; cost: number }): void {
    const { calls, tokens, cost } = this.#byName.get(name) ?? nothing;
    this.#byName.set(name, {
      calls: calls + 1,
      tokens: addTokens(tokens, call.tokens),
      cost: cost + call.cost,
    });
  }

  /** The dearest first. */
  rows(): { name: string; spending: ModelUsage }[] {
    const rows = [...this.#byName].map(([name, spending]) => ({ name, spending }));
    return rows.sort(
      (one, other) => other.spending.cost - one.spending.cost || compare(one.name, other.name),
    );
  }

  total(): ModelUsage {
    return [...this.#byName.values()].reduce(
      (sum, { calls, tokens, cost }) => ({
        calls: sum.calls + calls,
        tokens: addTokens(sum.tokens, tokens),
        cost: sum.cost + cost,
      }),
      nothing,
    );
  }
}

const nothing: ModelUsage = { calls: 0, tokens: noTokens, cost: 0 };

const compare = (one: string, other: string): number => (one < other ? -1 : one > other ? 1 : 0);
