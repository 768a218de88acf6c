import type {
  SessionConfigOption,
  SessionConfigSelectOption,
  SessionModeState,
} from "@agentclientprotocol/sdk/unstable";
import { type Agent, noDescription } from "../../agent/agent.ts";
import { type ApprovalMode, approvalModeSchema, type ModelRef } from "../../message/message.ts";
import type { Model } from "../../model/model.ts";
import type { Session } from "../../session/session.ts";
import type { ClientFeatures } from "../client-capabilities.ts";
import { invalidParams } from "../errors.ts";
import { groupByProvider, parseBoolean, toSelects } from "./option-forms.ts";

const modeOption = "mode";
const modelOption = "model";
const effortOption = "thought_level";
const approvalOption = "approval";
const compactionOption = "auto_compact";
/** Uses the effort of the agent, the configuration or the model. No model has an effort with this name. */
const defaultEffort = "default";
/** Placeholder while no model is selected. Differs from all model values, which contain a slash. */
const noModel: SessionConfigSelectOption = { value: "none", name: "Choose a model" };
/** Maximum number of valid names in an error. */
const listLimit = 20;

/** Creates the pickers of a response: as options, and as modes for clients without options. */
export function createPickers(session: Session, client: ClientFeatures) {
  return { modes: createModes(session), configOptions: createClientOptions(session, client) };
}

function createModes(session: Session): SessionModeState {
  return {
    currentModeId: session.agent.name,
    availableModes: primaryAgents(session).map((agent) => ({ id: agent.name, ...describeAgent(agent) })),
  };
}

/** Creates the options; booleans become selects for clients without boolean options. */
export function createClientOptions(
  session: Session,
  { booleanOptions: switches }: ClientFeatures,
): SessionConfigOption[] {
  const options = createOptions(session);
  return switches ? options : toSelects(options);
}

function createOptions(session: Session): SessionConfigOption[] {
  const mode: SessionConfigOption = {
    type: "select",
    id: modeOption,
    name: "Mode",
    category: "mode",
    currentValue: session.agent.name,
    options: primaryAgents(session).map((agent) => ({ value: agent.name, ...describeAgent(agent) })),
  };
  const model = modelSelect(session);
  const effort = effortSelect(session);
  const known = [model, effort].filter((option) => option !== undefined);
  return [mode, ...known, approvalSelect(session), compactionSwitch(session)];
}

/** Sets an option. Throws if the option or the value does not exist. */
export async function setOption(session: Session, optionId: string, value: unknown): Promise<void> {
  const options = createOptions(session);
  const option = options.find(({ id }) => id === optionId);
  if (option === undefined && isClientTimeout(optionId, value)) return;
  if (option === undefined)
    throw invalidParams(
      `Option "${optionId}" not found. Options: ${formatList(options.map(({ id }) => id))}.`,
    );
  if (option.type === "boolean") return setBoolean(session, optionId, value);
  const values = listValues(option);
  if (typeof value !== "string" || !values.includes(value))
    throw invalidParams(
      `The option "${optionId}" has no value ${JSON.stringify(value)}. Values: ${formatList(values)}.`,
    );
  if (optionId === modeOption) return session.settings.setAgent(value);
  if (optionId === effortOption)
    return session.settings.setEffort(value === defaultEffort ? undefined : value);
  if (optionId === approvalOption) return setApproval(session, approvalModeSchema.parse(value));
  const model = session.project.models.list().find((candidate) => modelValue(candidate.ref) === value);
  if (model !== undefined) await session.settings.setModel(model.ref);
}

/**
 * Whether a client announces its own time limit for turns, in seconds. OpenClaw does it with every agent and ends the
 * turn if it fails. The client keeps the limit itself; the answer lists the options that exist.
 */
function isClientTimeout(optionId: string, value: unknown): boolean {
  return optionId === "timeout" && typeof value === "string" && /^\d+$/.test(value);
}

async function setApproval(session: Session, mode: ApprovalMode): Promise<void> {
  const problem = mode === "sandboxed" ? await session.project.findSandboxProblem() : undefined;
  if (problem !== undefined) throw invalidParams(problem);
  await session.settings.setApproval(mode);
}

async function setBoolean(session: Session, optionId: string, value: unknown): Promise<void> {
  const isOn = parseBoolean(value);
  if (isOn === undefined)
    throw invalidParams(
      `The option "${optionId}" has no value ${JSON.stringify(value)}. Values: "on", "off", true, false.`,
    );
  await session.settings.setAutoCompact(isOn);
}

export async function setMode(session: Session, name: string): Promise<void> {
  const known = primaryAgents(session).map((agent) => agent.name);
  if (!known.includes(name)) throw invalidParams(`Mode "${name}" not found. Modes: ${formatList(known)}.`);
  await session.settings.setAgent(name);
}

function modelSelect(session: Session): SessionConfigOption | undefined {
  const current = session.model;
  const models = session.project.models.list();
  if (current === undefined && models.length === 0) return undefined;
  const choices = models.map(toModelChoice);
  const currentChoice = current === undefined ? noModel : toModelChoice(current);
  const isListed = choices.some(({ value }) => value === currentChoice.value);
  return {
    type: "select",
    id: modelOption,
    name: "Model",
    category: "model",
    currentValue: currentChoice.value,
    options: groupByProvider(isListed ? choices : [currentChoice, ...choices]),
  };
}

/** Creates the effort picker; undefined if the model has no efforts. */
function effortSelect(session: Session): SessionConfigOption | undefined {
  const { model, effort } = session.settings;
  if (model === undefined || model.variants.length === 0) return undefined;
  const names = model.variants.filter((name) => name !== defaultEffort);
  const isListed = effort === undefined || names.includes(effort);
  return {
    type: "select",
    id: effortOption,
    name: "Thinking",
    description: "How much the model thinks before it answers.",
    category: "thought_level",
    currentValue: effort ?? defaultEffort,
    options: [
      { value: defaultEffort, name: describeDefaultEffort(model) },
      ...[...(isListed ? [] : [effort]), ...names].map((value) => ({ value, name: capitalize(value) })),
    ],
  };
}

function describeDefaultEffort({ defaultEffort: effort }: Model): string {
  return effort === undefined ? "Default" : `Default (${effort})`;
}

function approvalSelect(session: Session): SessionConfigOption {
  return {
    type: "select",
    id: approvalOption,
    name: "Approval",
    description: "Which tool calls run without asking. Rules that deny always apply.",
    category: "_approval",
    currentValue: session.info.approval ?? "ask",
    options: approvalChoices.filter(({ value }) => value !== "sandboxed" || hasSandbox(session)),
  };
}

function compactionSwitch(session: Session): SessionConfigOption {
  return {
    type: "boolean",
    id: compactionOption,
    name: "Automatic compaction",
    description: "Summarizes the conversation automatically when the model's context is full.",
    category: "model_config",
    currentValue: session.settings.autoCompact,
  };
}

/** Systems without a sandbox do not offer it, unless it is in use. Elsewhere choosing it says what is missing. */
function hasSandbox({ info }: Session): boolean {
  return ["linux", "darwin"].includes(process.platform) || info.approval === "sandboxed";
}

const approvalChoices: readonly SessionConfigSelectOption[] = [
  { value: "ask", name: "Ask", description: "Asks when a rule says so" },
  {
    value: "accept-edits",
    name: "Accept edits",
    description: "Changes files in the workspace without asking; commands still ask",
  },
  {
    value: "sandboxed",
    name: "Sandboxed",
    description: "Commands run without asking in a sandbox: they write only here and have no network",
  },
  {
    value: "auto",
    name: "Auto-approve",
    description: "Runs everything without asking, except what rules deny",
  },
];

function toModelChoice({ ref, name }: Model): SessionConfigSelectOption {
  return { value: modelValue(ref), name, description: ref.provider };
}

function primaryAgents(session: Session): Agent[] {
  return [...session.project.agents.values()].filter((agent) => !agent.hidden && agent.mode !== "subagent");
}

/** Describes an agent for the mode picker. */
function describeAgent({ name, label, description, color }: Agent): AgentDescription {
  return {
    name: label ?? capitalize(name),
    ...(description !== noDescription && { description: description.trim() }),
    ...(color !== undefined && { _meta: { color } }),
  };
}

interface AgentDescription {
  name: string;
  description?: string;
  /** The agent's color as configured: `#rrggbb` or a name. */
  _meta?: { color: string };
}

function modelValue({ provider, model }: ModelRef): string {
  return `${provider}/${model}`;
}

function listValues(option: SessionConfigOption): string[] {
  if (option.type !== "select") return [];
  return option.options.flatMap((choice) =>
    "value" in choice ? [choice.value] : choice.options.map(({ value }) => value),
  );
}

function formatList(names: readonly string[]): string {
  const more = names.length - listLimit;
  return more <= 0 ? names.join(", ") : `${names.slice(0, listLimit).join(", ")} and ${more} more`;
}

function capitalize(name: string): string {
  return name.charAt(0).toUpperCase() + name.slice(1);
}
