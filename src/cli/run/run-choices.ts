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

const agentOption = "mode";
const modelOption = "model";
const effortOption = "thought_level";
const approvalOption = "approval";

/** The agent, model and effort that answer. */
export interface AppliedChoices {
  readonly agent: string;
  readonly model: string;
  readonly effort?: string;
}

/** Applies --agent, --model, --effort and --approval. Throws {@link UserError} that names the flag. */
export async function applyChoices(target: Target, options: RunOptions): Promise<AppliedChoices> {
  const { available } = target;
  const chosen =
    options.agent === undefined
      ? available.configOptions
      : await chooseAgent(target, options.agent, options.cwd);
  const applied = await chooseModel({ ...target, available: { configOptions: chosen } }, options);
  await chooseApproval(target, options.approval);
  const effort = findCurrentValue(effortOption, applied);
  return {
    agent: findCurrentValue(agentOption, applied) ?? "",
    model: findCurrentValue(modelOption, applied) ?? "",
    ...(effort !== undefined && { effort }),
  };
}

async function chooseAgent(
  { editor, sessionId, available }: Target,
  name: string,
  cwd: string,
): Promise<AvailableChoices["configOptions"]> {
  const names = available.modes?.availableModes.map(({ id }) => id) ?? [];
  if (!names.includes(name)) throw new UserError(await describeUnavailableAgent(name, names, cwd));
  return setOption(editor, { sessionId, configId: agentOption, value: name });
}

async function chooseApproval({ editor, sessionId }: Target, value: string | undefined): Promise<void> {
  if (value !== undefined) await setOption(editor, { sessionId, configId: approvalOption, value });
}

async function setOption(
  { agent }: Editor,
  { sessionId, configId, value }: Record<"sessionId" | "configId" | "value", string>,
): Promise<AvailableChoices["configOptions"]> {
  const answer = await agent.request("session/set_config_option", { sessionId, configId, value });
  return answer.configOptions;
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

async function chooseModel(
  { editor, sessionId, available }: Target,
  { model: name, effort: flag }: RunOptions,
): Promise<AvailableChoices["configOptions"]> {
  const set = (configId: string, value: string) => setOption(editor, { sessionId, configId, value });
  const named = name === undefined ? undefined : findModel(name, available.configOptions);
  if (named?.effort !== undefined && flag !== undefined && flag !== named.effort)
    throw new UserError(
      `--model ${name} and --effort ${flag} name different efforts: use one of them, or the same in both.`,
    );
  const options = named === undefined ? available.configOptions : await set(modelOption, named.model);
  const effort = flag ?? named?.effort;
  if (effort === undefined) return options;
  const efforts = getOptionValues(effortOption, options);
  if (!efforts.includes(effort)) {
    const model = named?.model ?? String(findCurrentValue(modelOption, options));
    throw new UserError(`The model ${model} has no effort "${effort}"${listEfforts(efforts)}.`);
  }
  return set(effortOption, effort);
}

/** Finds the model that --model names. Throws {@link UserError} if it cannot be used. */
function findModel(name: string, options: AvailableChoices["configOptions"]): ReturnType<typeof splitModel> {
  const models = getOptionValues(modelOption, options);
  const named = splitModel(name, models);
  if (models.includes(named.model)) return named;
  throw new UserError(
    `The model ${name} cannot be used.${didYouMean(nearestModel(named.model, models))} fairlead models lists those that can.`,
  );
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

function findCurrentValue(id: string, options: AvailableChoices["configOptions"]): string | undefined {
  const value = options?.find((one) => one.id === id)?.currentValue;
  return typeof value === "string" ? value : undefined;
}

const listEfforts = (efforts: readonly string[]): string =>
  efforts.length === 0 ? "; it has none" : `; it has ${efforts.join(", ")}`;

const didYouMean = (name: string | undefined): string => (name === undefined ? "" : ` Did you mean ${name}?`);
