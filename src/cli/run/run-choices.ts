import type { SessionConfigOption, SessionModeState } from "@agentclientprotocol/sdk";
import { UserError } from "../../base/errors.ts";
import { nearest } from "../../base/text/nearest.ts";
import type { Editor } from "../commands/editor.ts";
import { openLocalApp } from "../local-app.ts";
import type { RunOptions } from "./run-options.ts";

/** The agents and settings that a session offers. */
export interface AvailableChoices {
  readonly modes?: SessionModeState | null;
  readonly configOptions?: readonly SessionConfigOption[] | null;
}

/** The session to apply choices to. */
interface Target {
  readonly editor: Editor;
  readonly sessionId: string;
  readonly available: AvailableChoices;
}

const modelOption = "model";
const effortOption = "thought_level";

/** Applies --agent and --model. Throws {@link UserError} that names the flag. */
export async function applyChoices(target: Target, { agent, model, cwd }: RunOptions): Promise<void> {
  if (agent !== undefined) await chooseAgent(target, agent, cwd);
  if (model !== undefined) await chooseModel(target, model);
}

async function chooseAgent(
  { editor, sessionId, available }: Target,
  name: string,
  cwd: string,
): Promise<void> {
  const names = available.modes?.availableModes.map(({ id }) => id) ?? [];
  if (!names.includes(name)) throw new UserError(await describeUnavailableAgent(name, names, cwd));
  await editor.agent.request("session/set_mode", { sessionId, modeId: name });
}

async function describeUnavailableAgent(
  name: string,
  names: readonly string[],
  cwd: string,
): Promise<string> {
  const { project } = await openLocalApp(cwd);
  const agent = project.agents.get(name);
  const choices = `--agent takes ${names.join(", ")}.`;
  if (agent?.mode === "subagent" && !agent.hidden)
    return `The agent ${name} is a subagent and cannot be chosen. ${choices} Mention it in the prompt instead: @${name}.`;
  if (agent !== undefined) return `The agent ${name} is hidden and cannot be chosen. ${choices}`;
  return `There is no agent "${name}".${didYouMean(nearest(name, names))} ${choices}`;
}

async function chooseModel({ editor, sessionId, available }: Target, name: string): Promise<void> {
  const models = getOptionValues(modelOption, available.configOptions);
  const { model, effort } = splitModel(name, models);
  if (!models.includes(model))
    throw new UserError(
      `The model ${name} cannot be used.${didYouMean(nearestModel(model, models))} fairlead models lists those that can.`,
    );
  const set = (configId: string, value: string) =>
    editor.agent.request("session/set_config_option", { sessionId, configId, value });
  const { configOptions } = await set(modelOption, model);
  if (effort === undefined) return;
  const efforts = getOptionValues(effortOption, configOptions);
  if (efforts.includes(effort)) await set(effortOption, effort);
  else throw new UserError(`The model ${model} has no thinking level "${effort}"${listLevels(efforts)}.`);
}

/** Splits `model:effort`. Model names may contain colons, so the part before the last one must be a known model. */
function splitModel(name: string, models: readonly string[]): { model: string; effort: string | undefined } {
  const at = name.lastIndexOf(":");
  const model = name.slice(0, at);
  const isSplit = at > 0 && !models.includes(name) && models.includes(model);
  return isSplit ? { model, effort: name.slice(at + 1) } : { model: name, effort: undefined };
}

/** Finds a similar model, first one whose provider was left out: the most common mistake. */
function nearestModel(name: string, models: readonly string[]): string | undefined {
  return models.find((model) => model.endsWith(`/${name}`)) ?? nearest(name, models);
}

function getOptionValues(id: string, options: AvailableChoices["configOptions"]): string[] {
  const option = options?.find((one) => one.id === id);
  if (option?.type !== "select") return [];
  return option.options.flatMap((choice) =>
    "value" in choice ? choice.value : choice.options.map(({ value }) => value),
  );
}

const listLevels = (efforts: readonly string[]): string =>
  efforts.length === 0 ? "" : `; it has ${efforts.join(", ")}`;

const didYouMean = (name: string | undefined): string => (name === undefined ? "" : ` Did you mean ${name}?`);
