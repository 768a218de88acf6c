import { InternalPrompt, type InternalPromptDeps } from "../tool-calls/internal-prompt.ts";

/** What the program's question about money is called on the wire. */
export const budgetTool = "budget";

/** US dollars that may be spent before the person is asked. */
export interface CostLimits {
  turn?: number;
  session?: number;
}

/** Spent so far, in US dollars. */
export interface CostSoFar {
  turn: number;
  session: number;
}

/** Asks before more is spent than the person set, and again each time the same amount has gone. */
export class Budget {
  readonly #limits: CostLimits;
  readonly #allowed: CostLimits;

  constructor(limits: CostLimits = {}) {
    this.#limits = limits;
    this.#allowed = { ...limits };
  }

  /** A new turn has the turn's limit whole again. */
  beginTurn(): void {
    this.#allowed.turn = this.#limits.turn;
  }

  /** Whether the next model call may be made. */
  async allows(
    spent: CostSoFar,
    deps: InternalPromptDeps,
    signal: AbortSignal,
  ): Promise<"yes" | "no" | "cancelled"> {
    for (const what of ["turn", "session"] as const) {
      const limit = this.#allowed[what];
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
      title: `This ${what} has cost ${dollars(spent)}. Go on for another ${dollars(more)}?`,
      input: { spent, limit: this.#allowed[what] },
      text: `Your limit is ${dollars(more)} a ${what} (max_cost in the configuration).`,
      subject: what,
      confirm: "only you can say what may be spent",
    });
    const decision = await call.ask(signal);
    const { outcome } = decision;
    if (outcome === "allowed") {
      this.#allowed[what] = spent + more;
      await call.complete(`Up to ${dollars(spent + more)} may be spent.`);
      return "yes";
    }
    if (outcome === "unasked") {
      await call.fail("failed", `Nothing more is spent, for you could not be asked: ${decision.problem}`);
      return "no";
    }
    const isCancelled = outcome === "cancelled";
    await call.fail(isCancelled ? "cancelled" : "rejected", "Nothing more is spent; the turn ends here.");
    return isCancelled ? "cancelled" : "no";
  }
}

function dollars(amount: number): string {
  return `$${amount.toFixed(amount < 1 ? 4 : 2)}`;
}
