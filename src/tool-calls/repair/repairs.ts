import { excerpt } from "../../base/text/excerpt.ts";

/** Maximum characters of a sent value that are quoted to the model. */
const quoteLimit = 60;
/** Maximum number of repairs and ignored keys that are named to the model. */
const namedLimit = 8;

/** Names of the repair's steps, for the log. */
export type RepairStep = "split" | "name" | "json" | "unwrapped" | "key" | "value" | "omitted" | "ignored";

/** Collects what was changed in one call. */
export class Repairs {
  readonly steps: RepairStep[] = [];
  readonly #changes: string[] = [];
  readonly #ignored: string[] = [];

  /** Adds a change: the used value and the value that the model sent. */
  add(step: RepairStep, used: string, sent: string): void {
    this.steps.push(step);
    this.#changes.push(`${used} (you sent ${excerpt(sent, quoteLimit)})`);
  }

  /** Adds a key that is not a parameter. */
  ignore(key: string): void {
    this.steps.push("ignored");
    this.#ignored.push(excerpt(key, quoteLimit));
  }

  get isEmpty(): boolean {
    return this.steps.length === 0;
  }

  /** Returns one line for the model; undefined if nothing was changed. */
  describe(): string | undefined {
    if (this.isEmpty) return undefined;
    const read = this.#changes.length === 0 ? [] : [`Read as ${joinNamed(this.#changes)}.`];
    const verb = this.#ignored.length === 1 ? "is not a parameter and was" : "are not parameters and were";
    const ignored = this.#ignored.length === 0 ? [] : [`${joinNamed(this.#ignored)} ${verb} ignored.`];
    return [...read, ...ignored].join(" ");
  }
}

function joinNamed(all: readonly string[]): string {
  const rest = all.length - namedLimit;
  return all.slice(0, namedLimit).join(", ") + (rest > 0 ? ` and ${rest} more` : "");
}

/** Formats a sent value for {@link Repairs.add}. */
export function quoteValue(value: unknown): string {
  return JSON.stringify(value) ?? "nothing";
}
