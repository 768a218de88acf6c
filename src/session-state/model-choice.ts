import type { Agent } from "../agent/agent.ts";
import type { AgentError, ModelRef } from "../message/message.ts";
import type { Model } from "../model/model.ts";
import type { Project } from "../conversation/project.ts";

/** Who may say which model answers, the strongest first. */
export interface ModelPreferences {
  /** By the person, in the editor. */
  chosen: ModelRef | undefined;
  /** The reasoning effort that the person chose beside the model. */
  effort: string | undefined;
  agent: Pick<Agent, "model" | "variant">;
  lastUsed: ModelRef | undefined;
}

/**
 * The first wish that is there decides, and when that model cannot be used this is an error: nothing falls back
 * to another model silently. Without a wish it is the configured one, the last used one, or the only one there is.
 */
export function chooseModel({ models }: Project, wishes: ModelPreferences): Model | AgentError {
  const wish = wishes.chosen ?? wishes.agent.model;
  const choice =
    wish === undefined ? models.defaultModel({ lastUsed: wishes.lastUsed }) : models.choose(wish);
  if (choice.outcome === "none") return choice.error;
  return applyEffort(choice.model, wishes);
}

/** The person's effort counts before one that was written behind the model, and that before the agent's. */
function applyEffort(model: Model, { effort, agent }: ModelPreferences): Model {
  const wished = [
    effort !== undefined && model.variants.includes(effort) ? effort : undefined,
    model.ref.variant,
    agent.variant !== undefined && supportsEffort(model, agent.variant) ? agent.variant : undefined,
  ];
  const variant = wished.find((one) => one !== undefined);
  return variant === undefined ? model : { ...model, ref: { ...model.ref, variant } };
}

/** Of a model that reasons but whose efforts are not known, any is believed. */
export function supportsEffort({ variants, abilities }: Model, effort: string): boolean {
  return variants.includes(effort) || (variants.length === 0 && abilities.reasoning);
}
