import type { AgentError, ModelRef } from "../message/message.ts";
import type { Model } from "../model/model.ts";
import type { Project } from "./project.ts";

/** Who may say which model answers, the strongest first. */
export interface ModelWishes {
  /** By the person, in the editor. */
  chosen: ModelRef | undefined;
  agent: ModelRef | undefined;
  lastUsed: ModelRef | undefined;
}

/**
 * The first wish that is there decides, and when that model cannot be used this is an error: nothing falls back
 * to another model silently. Without a wish it is the configured one, the last used one, or the only one there is.
 */
export function chooseModel(project: Project, wishes: ModelWishes): Model | AgentError {
  const { models } = project;
  const wish = wishes.chosen ?? wishes.agent;
  if (wish !== undefined) return models.find(wish) ?? unusable(wish);
  const chosen = models.defaultModel({ lastUsed: wishes.lastUsed });
  return chosen.outcome === "found" ? chosen.model : chosen.error;
}

function unusable({ provider, model }: ModelRef): AgentError {
  return {
    code: "no-model",
    message: `The model ${provider}/${model} cannot be used: its provider is not configured or has no key. Choose another model, or set the provider's key.`,
    retryable: false,
  };
}
