import type { SessionConfigOption, SessionModeState } from "@agentclientprotocol/sdk";
import { UserError } from "../../base/errors.ts";
import { nearest } from "../../base/text/nearest.ts";
import type { Editor } from "../commands/editor.ts";
import { localApp } from "../local-app.ts";
import type { RunOptions } from "./run-options.ts";

/** What a session that was opened offers to choose from. */
export interface Offered {
  readonly modes?: SessionModeState | null;
  readonly configOptions?: readonly SessionConfigOption[] | null;
}

/** A session in which choices are made. */
interface Target {
  readonly editor: Editor;
  readonly sessionId: string;
  readonly offered: Offered;
}

const modelOption = "model";
const effortOption = "thought_level";

/** Makes the choices of the flags --agent and --model. Throws {@link UserError} in the words of the command line. */
export async function choose(target: Target, { agent, model, cwd }: RunOptions): Promise<void> {
  if (agent !== undefined) await chooseAgent(target, agent, cwd);
  if (model !== undefined) await chooseModel(target, model);
}

async function chooseAgent({ editor, sessionId, offered }: Target, name: string, cwd: string): Promise<void> {
  const names = offered.modes?.availableModes.map(({ id }) => id) ?? [];
  if (!names.includes(name)) throw new UserError(await whyNoAgent(name, names, cwd));
  await editor.agent.request("session/set_mode", { sessionId, modeId: name });
}

async function whyNoAgent(name: string, names: readonly string[], cwd: string): Promise<string> {
  const { project } = await localApp(cwd);
  const agent = project.agents.get(name);
  const choices = `--agent takes ${names.join(", ")}.`;
  if (agent?.mode === "subagent" && !agent.hidden)
    return `The agent ${name} works for other agents only and cannot be chosen. ${choices} Mention it in the prompt instead: @${name}.`;
  if (agent !== undefined) return `The agent ${name} is hidden and cannot be chosen. ${choices}`;
  return `There is no agent "${name}".${meant(nearest(name, names))} ${choices}`;
}

async function chooseModel({ editor, sessionId, offered }: Target, name: string): Promise<void> {
  const models = valuesOf(modelOption, offered.configOptions);
  const { model, effort } = splitModel(name, models);
  if (!models.includes(model))
    throw new UserError(
      `The model ${name} cannot be used.${meant(nearestModel(model, models))} fairlead models lists those that can.`,
    );
  const set = (configId: string, value: string) =>
    editor.agent.request("session/set_config_option", { sessionId, configId, value });
  const { configOptions } = await set(modelOption, model);
  if (effort === undefined) return;
  const efforts = valuesOf(effortOption, configOptions);
  if (efforts.includes(effort)) await set(effortOption, effort);
  else throw new UserError(`The model ${model} has no thinking level "${effort}"${levels(efforts)}.`);
}

/** A model may have colons in its name: only what follows a listed one is a level of thinking. */
function splitModel(name: string, models: readonly string[]): { model: string; effort: string | undefined } {
  const at = name.lastIndexOf(":");
  const model = name.slice(0, at);
  const isSplit = at > 0 && !models.includes(name) && models.includes(model);
  return isSplit ? { model, effort: name.slice(at + 1) } : { model: name, effort: undefined };
}

/** A name without its provider is the commonest slip. */
function nearestModel(name: string, models: readonly string[]): string | undefined {
  return models.find((model) => model.endsWith(`/${name}`)) ?? nearest(name, models);
}

function valuesOf(id: string, options: Offered["configOptions"]): string[] {
  const option = options?.find((one) => one.id === id);
  if (option?.type !== "select") return [];
  return option.options.flatMap((choice) =>
    "value" in choice ? choice.value : choice.options.map(({ value }) => value),
  );
}

const levels = (efforts: readonly string[]): string =>
  efforts.length === 0 ? "" : `; it has ${efforts.join(", ")}`;

const meant = (name: string | undefined): string => (name === undefined ? "" : ` Did you mean ${name}?`);
