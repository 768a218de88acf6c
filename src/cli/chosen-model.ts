import { UserError } from "../base/errors.ts";
import type { ModelRef } from "../message/message.ts";
import type { Model } from "../model/model.ts";
import type { Project } from "../conversation/project.ts";
import type { Call } from "./command-line/command.ts";

/** Returns the model of `--model`, else `preferred`, else the default. Throws {@link UserError} when it is not usable. */
export function resolveModel(call: Call, { models }: Project, preferred?: ModelRef): Model {
  const name = call.text("model");
  if (name !== undefined) {
    const model = models.findByName(name);
    if (model === undefined)
      throw new UserError(`The model ${name} cannot be used. fairlead models lists those that can.`);
    return model;
  }
  const chosen = preferred === undefined ? models.defaultModel() : models.choose(preferred);
  if (chosen.outcome === "none") throw new UserError(chosen.error.message);
  return chosen.model;
}
