import { UserError } from "../base/errors.ts";
import type { ModelRef } from "../message/message.ts";
import type { Model } from "../model/model.ts";
import type { Project } from "../conversation/project.ts";
import type { Call } from "./command-line/command.ts";

/** The model of `--model`, else the one that is wished, else the usual one. Throws {@link UserError} for one that cannot be used. */
export function chosenModel(call: Call, { models }: Project, wished?: ModelRef): Model {
  const name = call.text("model");
  if (name !== undefined) {
    const model = models.findByName(name);
    if (model === undefined)
      throw new UserError(`The model ${name} cannot be used. fairlead models lists those that can.`);
    return model;
  }
  const chosen = wished === undefined ? models.defaultModel() : models.choose(wished);
  if (chosen.outcome === "none") throw new UserError(chosen.error.message);
  return chosen.model;
}
