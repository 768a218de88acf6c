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
import type { ContextWindows } from "../context/windows.ts";

export interface SessionSettingsDeps {
  sessionId: SessionId;
  infoStore: SessionInfoStore;
  gate: Pick<Decider, "reconsider">;
  emit: Emit;
  project(): Project;
  /** Remembers the model for new sessions of the project. */
  rememberModel(model: ModelRef): Promise<void>;
  lastUsedModel: ModelRef | undefined;
  windows: Pick<ContextWindows, "applyTo">;
}

/**
 * Agent, model, effort and approval mode of a session: the user's choices, else the defaults of agents and
 * configuration.
 */
export class SessionSettings {
  readonly #deps: SessionSettingsDeps;
  /** The agent selected after the message that is being answered. */
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

  /** Returns the named agent, or the session's agent if it does not exist. */
  agentNamed(name: string | undefined): Agent {
    return (name === undefined ? undefined : this.#deps.project().agents.get(name)) ?? this.agent;
  }

  /** Limits of an agent selected during the turn; they apply immediately, so that plan mode stops changes. */
  get limits(): readonly Ruleset[] {
    return this.#nextAgent?.limits ?? [];
  }

  beginTurn(): void {
    this.#nextAgent = undefined;
  }

  /** Names of the agents that the user can select. */
  get agentNames(): string[] {
    return [...this.#deps.project().agents.values()].filter(isSelectable).map(({ name }) => name);
  }

  /** The model for the next message, if one can be chosen. */
  get model(): Model | undefined {
    return this.modelOf(undefined);
  }

  /** Returns the model for a message, or the error why none can be used. */
  modelFor(message: UserInfo): Model | AgentError {
    return this.#choose(this.agentNamed(message.agent), message);
  }

  /** Returns the model for the next message to the agent, if one can be chosen. */
  modelOf(agent: string | undefined): Model | undefined {
    const choice = this.#choose(this.agentNamed(agent), this.#deps.infoStore.info);
    return "code" in choice ? undefined : choice;
  }

  /** The reasoning effort for the next message; undefined for the model's default. */
  get effort(): string | undefined {
    return this.model?.ref.variant;
  }

  /** Whether a full context is compacted automatically. */
  get autoCompact(): boolean {
    return this.#deps.infoStore.info.autoCompact ?? this.#deps.project().config.compaction?.auto !== false;
  }

  async setAgent(name: string): Promise<void> {
    const { sessionId, infoStore, gate, emit } = this.#deps;
    const agent = this.#deps.project().agents.get(name);
    if (agent === undefined || !isSelectable(agent)) throw new UserError(`Mode "${name}" not found.`);
    if (name === infoStore.info.agent) return;
    this.#nextAgent = agent;
    gate.reconsider();
    await infoStore.save({ agent: name });
    emit({ sessionId, type: "agent", agent: name });
  }

  /** Sets the client's explicit choice, which overrides agents and configuration. */
  async setModel(model: ModelRef): Promise<void> {
    const { sessionId, infoStore, emit } = this.#deps;
    if (this.#deps.project().models.find(model) === undefined)
      throw new UserError(`Model "${model.provider}/${model.model}" not found.`);
    await infoStore.save({ model });
    await this.#deps.rememberModel(model);
    emit({ sessionId, type: "model", model });
  }

  /** Sets the reasoning effort; undefined leaves it to the model, the agent or the configuration. */
  async setEffort(effort: string | undefined): Promise<void> {
    const { sessionId, infoStore, emit } = this.#deps;
    await infoStore.save({ effort });
    emit({ sessionId, type: "model", model: infoStore.info.model });
  }

  /** Sets the approval mode and withdraws pending questions that it settles. */
  async setApproval(approval: ApprovalMode): Promise<void> {
    const { sessionId, infoStore, gate, emit } = this.#deps;
    if (approval === (infoStore.info.approval ?? "ask")) return;
    await infoStore.save({ approval });
    gate.reconsider();
    emit({ sessionId, type: "approval", approval });
  }

  async setAutoCompact(autoCompact: boolean): Promise<void> {
    if (autoCompact === this.autoCompact) return;
    const { sessionId, infoStore, emit } = this.#deps;
    await infoStore.save({ autoCompact });
    emit({ sessionId, type: "options" });
  }

  #choose(agent: Agent, { model, effort }: Pick<UserInfo, "model" | "effort">): Model | AgentError {
    const { lastUsedModel, windows } = this.#deps;
    const preferences = { selected: model, effort, agent, lastUsed: lastUsedModel };
    const choice = chooseModel(this.#deps.project(), preferences);
    return "code" in choice ? choice : windows.applyTo(choice);
  }
}

/** Whether the user can select the agent. */
function isSelectable({ hidden, mode }: Agent): boolean {
  return !hidden && mode !== "subagent";
}
