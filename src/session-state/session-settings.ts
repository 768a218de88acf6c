import { UserError } from "../base/errors.ts";
import type { Agent } from "../agent/agent.ts";
import type { Emit } from "../message/event.ts";
import type { SessionId } from "../message/ids.ts";
import type { AgentError, ApprovalMode, ModelRef, UserInfo } from "../message/message.ts";
import type { Model } from "../model/model.ts";
import type { Decider } from "../permission/gate.ts";
import type { Ruleset } from "../permission/rule.ts";
import { chooseModel } from "./model-choice.ts";
import type { Project } from "../conversation/project.ts";
import type { SessionInfoStore } from "../conversation/session-info-store.ts";
import type { Windows } from "../context/windows.ts";

export interface SessionSettingsDeps {
  sessionId: SessionId;
  infoStore: SessionInfoStore;
  gate: Pick<Decider, "reconsider">;
  emit: Emit;
  project(): Project;
  /** Remembers the model for new sessions of the project. */
  rememberModel(model: ModelRef): Promise<void>;
  lastUsedModel: ModelRef | undefined;
  windows: Pick<Windows, "applyTo">;
}

/** Who answers in a session and how: what the person chose, and what agents and configuration say where nothing was. */
export class SessionSettings {
  readonly #deps: SessionSettingsDeps;
  /** The agent that was chosen behind the message which is answered now. */
  #nextAgent: Agent | undefined;

  constructor(deps: SessionSettingsDeps) {
    this.#deps = deps;
  }

  get agent(): Agent {
    const { agents, defaultAgent } = this.#deps.project();
    const agent = agents.get(this.#deps.infoStore.info.agent) ?? agents.get(defaultAgent);
    if (agent === undefined) throw new Error(`no agent ${defaultAgent}`);
    return agent;
  }

  /** The session's agent where it is not there, or no more. */
  agentNamed(name: string | undefined): Agent {
    return (name === undefined ? undefined : this.#deps.project().agents.get(name)) ?? this.agent;
  }

  /** What holds at once for a turn that began under another agent: who chooses plan mode wants nothing changed any more. */
  get limits(): readonly Ruleset[] {
    return this.#nextAgent?.limits ?? [];
  }

  beginTurn(): void {
    this.#nextAgent = undefined;
  }

  /** Names of the agents that a person may choose. */
  get agentNames(): string[] {
    return [...this.#deps.project().agents.values()].filter(isSelectable).map(({ name }) => name);
  }

  /** The model that would answer now, if one can be chosen. */
  get model(): Model | undefined {
    return this.modelOf(undefined);
  }

  /** The model that answers a message, or why there is none. */
  modelFor(message: UserInfo): Model | AgentError {
    return this.#choose(this.agentNamed(message.agent), message);
  }

  /** The model that would answer a message to this agent now, if one can be chosen. */
  modelOf(agent: string | undefined): Model | undefined {
    const choice = this.#choose(this.agentNamed(agent), this.#deps.infoStore.info);
    return "code" in choice ? undefined : choice;
  }

  /** The reasoning effort with which the model would answer now; undefined is the model's own. */
  get effort(): string | undefined {
    return this.model?.ref.variant;
  }

  /** Whether a full context is summed up by itself. */
  get autoCompact(): boolean {
    return this.#deps.infoStore.info.autoCompact ?? this.#deps.project().config.compaction?.auto !== false;
  }

  async setAgent(name: string): Promise<void> {
    const { sessionId, infoStore, gate, emit } = this.#deps;
    const agent = this.#deps.project().agents.get(name);
    if (agent === undefined || !isSelectable(agent)) throw new UserError(`There is no mode "${name}".`);
    if (name === infoStore.info.agent) return;
    this.#nextAgent = agent;
    gate.reconsider();
    await infoStore.save({ agent: name });
    await emit({ sessionId, type: "agent", agent: name });
  }

  /** The client's explicit choice; it stands above what agents and configuration say. */
  async setModel(model: ModelRef): Promise<void> {
    const { sessionId, infoStore, emit } = this.#deps;
    if (this.#deps.project().models.find(model) === undefined)
      throw new UserError(`There is no model "${model.provider}/${model.model}".`);
    await infoStore.save({ model });
    await this.#deps.rememberModel(model);
    await emit({ sessionId, type: "model", model });
  }

  /** How much the model thinks from now on; undefined leaves it to the model, the agent or the configuration. */
  async setEffort(effort: string | undefined): Promise<void> {
    const { sessionId, infoStore, emit } = this.#deps;
    await infoStore.save({ effort });
    await emit({ sessionId, type: "model", model: infoStore.info.model });
  }

  /** How much goes without asking from now on; questions that it settles are taken back. */
  async setApproval(approval: ApprovalMode): Promise<void> {
    const { sessionId, infoStore, gate, emit } = this.#deps;
    if (approval === (infoStore.info.approval ?? "ask")) return;
    await infoStore.save({ approval });
    gate.reconsider();
    await emit({ sessionId, type: "approval", approval });
  }

  async setAutoCompact(autoCompact: boolean): Promise<void> {
    if (autoCompact === this.autoCompact) return;
    const { sessionId, infoStore, emit } = this.#deps;
    await infoStore.save({ autoCompact });
    await emit({ sessionId, type: "options" });
  }

  #choose(agent: Agent, { model, effort }: Pick<UserInfo, "model" | "effort">): Model | AgentError {
    const { lastUsedModel, windows } = this.#deps;
    const wishes = { chosen: model, effort, agent, lastUsed: lastUsedModel };
    const choice = chooseModel(this.#deps.project(), wishes);
    return "code" in choice ? choice : windows.applyTo(choice);
  }
}

/** Whether a person may talk to it. */
function isSelectable({ hidden, mode }: Agent): boolean {
  return !hidden && mode !== "subagent";
}
