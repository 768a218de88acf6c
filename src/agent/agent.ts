import type { ModelRef } from "../message/message.ts";
import type { Ruleset } from "../permission/rule.ts";

/** Description shown to the model for an agent without one. */
export const noDescription = "Has no description: only for use when the user names it.";

/** A prompt, a model and rules under a name. ACP calls a primary agent a mode. */
export interface Agent {
  readonly name: string;
  /** Display name. */
  readonly label?: string;
  readonly description: string;
  readonly mode: "primary" | "subagent" | "all";
  /** Hidden from lists and pickers; tasks and `@name` can still call it. */
  readonly hidden: boolean;
  /** Replaces the system prompt of the model's family. */
  readonly prompt?: string;
  readonly model?: ModelRef;
  /** Variant of the session's model, if the agent sets one without a model. */
  readonly variant?: string;
  readonly temperature?: number;
  readonly topP?: number;
  /** Maximum number of model calls per turn. */
  readonly steps?: number;
  readonly color?: string;
  /** Passed to the provider. */
  readonly options: Record<string, unknown>;
  /** Defaults, then built-in rules, the user's rules and the agent's own rules. */
  readonly rules: Ruleset;
  /** Additional rules that must allow a call too, such as those of a read-only agent. */
  readonly limits?: readonly Ruleset[];
  /** Rules of the calling agents, in a child session: each must allow a call too. */
  readonly within?: readonly Ruleset[];
  /** Permissions that the agent's own definition mentions. */
  readonly named: ReadonlySet<string>;
  /** Built in. */
  readonly native: boolean;
}

/** Whether a command may name the agent. Hidden subagents only run tasks. */
export function isCallable({ hidden, mode }: Agent): boolean {
  return !hidden || mode !== "primary";
}
