import { UserError } from "../base/errors.ts";
import type { ModelRef } from "../message/message.ts";
import type { Model } from "../model/model.ts";
import type { Project } from "../conversation/project.ts";
import type { Call } from "./command-line/command.ts";

/** Returns the model of `--model`, else `preferred`, else the default. Throws {@link UserError} when it is not usable. */
export function resolveModel(call: Call, { models }: Project, preferred?: ModelRef): Model {
  const name = call.text("model");
  const chosen = chooseModel(models, name, preferred);
  if (chosen.outcome === "none") throw new UserError(chosen.error.message);
  return chosen.model;
}

function chooseModel(models: Project["models"], name: string | undefined, preferred: ModelRef | undefined) {
  if (name !== undefined) return models.chooseByName(name);
  return preferred === undefined ? models.defaultModel() : models.choose(preferred);
}
