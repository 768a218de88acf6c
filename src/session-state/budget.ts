import { InternalPrompt, type InternalPromptDeps } from "../tool-calls/internal-prompt.ts";

/** Tool name of the cost question on the wire. */
export const budgetTool = "budget";

/** Cost in US dollars at which the user is asked. */
export interface CostLimits {
  turn?: number;
  session?: number;
}

/** Cost so far, in US dollars. */
export interface CostSoFar {
  turn: number;
  session: number;
}

/** Asks the user when a cost limit is reached, and again after each further cost of the same amount. */
export class Budget {
  readonly #limits: CostLimits;
  readonly #nextLimits: CostLimits;

  constructor(limits: CostLimits = {}) {
    this.#limits = limits;
    this.#nextLimits = { ...limits };
  }

  /** Resets the limit of the turn. */
  beginTurn(): void {
    this.#nextLimits.turn = this.#limits.turn;
  }

  /** Returns whether the user would be asked before the next model call. */
  isReached(spent: CostSoFar): boolean {
    return (["turn", "session"] as const).some((what) => spent[what] >= (this.#nextLimits[what] ?? Infinity));
  }

  /** Returns whether the next model call may be made. */
  async allows(
    spent: CostSoFar,
    deps: InternalPromptDeps,
    signal: AbortSignal,
  ): Promise<"yes" | "no" | "cancelled"> {
    for (const what of ["turn", "session"] as const) {
      const limit = this.#nextLimits[what];
      if (limit === undefined || spent[what] < limit) continue;
      const answer = await this.#ask(what, spent[what], deps, signal);
      if (answer !== "yes") return answer;
    }
    return "yes";
  }

  async #ask(
    what: keyof CostSoFar,
    spent: number,
    deps: InternalPromptDeps,
    signal: AbortSignal,
  ): Promise<"yes" | "no" | "cancelled"> {
    const more = this.#limits[what] ?? 0;
    const call = new InternalPrompt(deps, {
      tool: budgetTool,
      title: `This ${what} has cost ${dollars(spent)}. Continue for another ${dollars(more)}?`,
      input: { spent, limit: this.#nextLimits[what] },
      text: `Your limit is ${dollars(more)} a ${what} (max_cost in the configuration).`,
      subject: what,
      confirm: "only you can decide about costs",
    });
    const decision = await call.ask(signal);
    const { outcome } = decision;
    if (outcome === "allowed") {
      this.#nextLimits[what] = spent + more;
      call.complete(`Up to ${dollars(spent + more)} may be spent.`);
      return "yes";
    }
    if (outcome === "unasked") {
      call.fail("failed", `Stopped at the cost limit because you could not be asked: ${decision.problem}`);
      return "no";
    }
    const isCancelled = outcome === "cancelled";
    call.fail(isCancelled ? "cancelled" : "rejected", "Stopped at the cost limit.");
    return isCancelled ? "cancelled" : "no";
  }
}

function dollars(amount: number): string {
  return `$${amount.toFixed(amount < 1 ? 4 : 2)}`;
}
