import type { Message } from "../message/message.ts";
import { addTokens, noTokens } from "../conversation/turn-result.ts";
import type { Tokens } from "../message/part.ts";
import { isCommandMessage } from "../conversation/checkpoints.ts";

/** Usage and cost of model calls. */
export interface ModelUsage {
  readonly calls: number;
  readonly tokens: Tokens;
  /** US dollars; 0 if prices are unknown. */
  readonly cost: number;
}

/** Sums up model calls by name. */
export class Stats {
  readonly #byName = new Map<string, ModelUsage>();

  /** Ignores messages without a model answer. */
  add(name: string, { info, ...message }: Message): void {
    if (info.role === "assistant" && !isCommandMessage({ info, ...message })) this.addCall(name, info);
  }

  /** Adds an internal call, such as one for a title. */
  addCall(name: string, call: { tokens: Tokens; cost: number }): void {
    const { calls, tokens, cost } = this.#byName.get(name) ?? zeroTokens;
    this.#byName.set(name, {
      calls: calls + 1,
      tokens: addTokens(tokens, call.tokens),
      cost: cost + call.cost,
    });
  }

  /** Highest cost first. */
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
      zeroTokens,
    );
  }
}

const zeroTokens: ModelUsage = { calls: 0, tokens: noTokens, cost: 0 };

const compare = (one: string, other: string): number => (one < other ? -1 : one > other ? 1 : 0);
