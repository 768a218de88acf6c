import type { ModelRef } from "../message/message.ts";
import type { Ruleset } from "../permission/rule.ts";

/** What a model is told of an agent that nobody described. */
export const noDescription = "Has no description: only for use when the user names it.";

/** Who answers: a prompt, a model and rules under a name. ACP calls a primary one a mode. */
export interface Agent {
  readonly name: string;
  /** Shown to people instead of the name. */
  readonly label?: string;
  readonly description: string;
  readonly mode: "primary" | "subagent" | "all";
  /** Left out of lists and pickers; a task or `@name` still calls it. */
  readonly hidden: boolean;
  /** Replaces the prompt of the model's family. */
  readonly prompt?: string;
  readonly model?: ModelRef;
  /** The variant of the session's model, where the agent names one without a model of its own. */
  readonly variant?: string;
  readonly temperature?: number;
  readonly topP?: number;
  /** Model calls a turn may take. */
  readonly steps?: number;
  readonly color?: string;
  /** Passed to the provider. */
  readonly options: Record<string, unknown>;
  /** Defaults, built-in rules, the person's and the agent's own, in that order. */
  readonly rules: Ruleset;
  /** Rules that must allow a call too, whatever `rules` say: what an agent that only reads may not do. */
  readonly limits?: readonly Ruleset[];
  /** Rules of those for whom it works in a child session: each must allow what it does, as much as its own. */
  readonly within?: readonly Ruleset[];
  /** Permissions of which its own definition speaks, by name. */
  readonly named: ReadonlySet<string>;
  /** Built in. */
  readonly native: boolean;
}

/** Whether a command may name the agent: hidden ones only do tasks. */
export function isCallable({ hidden, mode }: Agent): boolean {
  return !hidden || mode !== "primary";
}
