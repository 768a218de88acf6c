import type { SessionConfigOption, SessionModeState } from "@agentclientprotocol/sdk";
import type { Agent } from "../agent/agent.ts";
import type { ModelRef } from "../message/message.ts";
import type { Session } from "../session/session.ts";
import { invalidParams } from "./errors.ts";

const modeOption = "mode";
const modelOption = "model";

/** The same state twice: as modes for clients that know no options, and as options. */
export function modesOf(session: Session): SessionModeState {
  return {
    currentModeId: session.agent.name,
    availableModes: primaryAgents(session).map(({ name, description }) => ({
      id: name,
      name: titled(name),
      description,
    })),
  };
}

export function optionsOf(session: Session): SessionConfigOption[] {
  const mode: SessionConfigOption = {
    type: "select",
    id: modeOption,
    name: "Mode",
    category: "mode",
    currentValue: session.agent.name,
    options: primaryAgents(session).map(({ name, description }) => ({
      value: name,
      name: titled(name),
      description,
    })),
  };
  const model = modelSelect(session);
  return model === undefined ? [mode] : [mode, model];
}

/** Changes the state behind an option. Throws for an option or a value that is not there. */
export async function setOption(session: Session, optionId: string, value: unknown): Promise<void> {
  if (typeof value !== "string") throw invalidParams(`The option "${optionId}" takes one of its values.`);
  if (optionId === modeOption) return setMode(session, value);
  if (optionId !== modelOption) throw invalidParams(`There is no option "${optionId}".`);
  const model = session.project.models.list().find((candidate) => modelValue(candidate.ref) === value);
  if (model === undefined) throw invalidParams(`There is no model "${value}".`);
  await session.setModel(model.ref);
}

export async function setMode(session: Session, name: string): Promise<void> {
  const known = primaryAgents(session).map((agent) => agent.name);
  if (!known.includes(name)) throw invalidParams(`There is no mode "${name}". Modes: ${known.join(", ")}.`);
  await session.setAgent(name);
}

function modelSelect(session: Session): SessionConfigOption | undefined {
  const current = session.model;
  if (current === undefined) return undefined;
  const models = session.project.models.list();
  const known = models.some((model) => modelValue(model.ref) === modelValue(current.ref));
  return {
    type: "select",
    id: modelOption,
    name: "Model",
    category: "model",
    currentValue: modelValue(current.ref),
    options: (known ? models : [current, ...models]).map(({ ref, name }) => ({
      value: modelValue(ref),
      name,
      description: ref.provider,
    })),
  };
}

function primaryAgents(session: Session): Agent[] {
  return [...session.project.agents.values()].filter((agent) => !agent.hidden && agent.mode !== "subagent");
}

function modelValue({ provider, model }: ModelRef): string {
  return `${provider}/${model}`;
}

function titled(name: string): string {
  return name.charAt(0).toUpperCase() + name.slice(1);
}
