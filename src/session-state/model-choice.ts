import type { Agent } from "../agent/agent.ts";
import type { AgentError, ModelRef } from "../message/message.ts";
import { nearestEffort } from "../model/catalog/efforts.ts";
import type { Model } from "../model/model.ts";
import type { Project } from "../conversation/project.ts";

/** Sources of the model choice, in order of precedence. */
export interface ModelPreferences {
  /** Selected by the user in the editor. */
  selected: ModelRef | undefined;
  /** Reasoning effort selected by the user. */
  effort: string | undefined;
  agent: Pick<Agent, "model" | "variant">;
  lastUsed: ModelRef | undefined;
}

/**
 * Chooses the model that the user or the agent names, else the configured, the last used or the only one. An unusable
 * named model is an error: there is no silent fallback.
 */
export function chooseModel({ models }: Project, preferences: ModelPreferences): Model | AgentError {
  const preferred = preferences.selected ?? preferences.agent.model;
  const choice =
    preferred === undefined
      ? models.defaultModel({ lastUsed: preferences.lastUsed })
      : models.choose(preferred);
  if (choice.outcome === "none") return choice.error;
  return applyEffort(choice.model, preferences);
}

/**
 * Precedence: the user's effort, the effort in the model's name, the agent's effort. Efforts chosen for another model are
 * replaced by the nearest one of this model.
 */
function applyEffort(model: Model, { effort, agent }: ModelPreferences): Model {
  const variant = fitEffort(model, effort) ?? model.ref.variant ?? fitEffort(model, agent.variant);
  return variant === undefined ? model : { ...model, ref: { ...model.ref, variant } };
}

function fitEffort(model: Model, effort: string | undefined): string | undefined {
  if (effort === undefined) return undefined;
  return supportsEffort(model, effort) ? effort : nearestEffort(model.variants, effort);
}

/** Returns whether the model has the effort. A reasoning model with unknown efforts accepts any. */
export function supportsEffort({ variants, abilities }: Model, effort: string): boolean {
  return variants.includes(effort) || (variants.length === 0 && abilities.reasoning);
}
