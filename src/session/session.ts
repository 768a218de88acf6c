import { deferred, type Deferred, sleep } from "../base/async.ts";
import { messageOf, UserError } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import type { Agent } from "../agent/agent.ts";
import type { Emit, Usage } from "../message/event.ts";
import { newPartId, type SessionId } from "../message/ids.ts";
import type { AgentError, AssistantInfo, ModelRef, SessionInfo, Todo, UserInfo } from "../message/message.ts";
import type { Part } from "../message/part.ts";
import type { Model } from "../model/model.ts";
import type { Gate } from "../permission/gate.ts";
import type { SessionWriter } from "../storage/session-store.ts";
import type { SeenFiles, TodoList, ToolContext } from "../tool/tool.ts";
import { type AnswerEffect, commandPrompt, parseCommand } from "./commands.ts";
import { requestCompaction } from "./compaction.ts";
import { contextTokens } from "./context-budget.ts";
import { chooseModel } from "./model-choice.ts";
import type { Project } from "./project.ts";
import { type PromptInput, textOf } from "./prompt-input.ts";
import { planReminder, steerReminder } from "./reminders.ts";
import type { StepOutcome } from "./step.ts";
import { fallbackTitle, generateTitle } from "./title.ts";
import type { ToolSpecs } from "./tool-set.ts";
import type { Transcript } from "./transcript.ts";
import { noTokens, type TurnResult } from "./turn-result.ts";

/** After a cancel the turn's answer comes within this time, whatever a provider or a tool does (acp.md 1). */
const cancelLimitMs = 2_500;

export interface SessionDeps {
  info: SessionInfo;
  project: Project;
  writer: SessionWriter;
  transcript: Transcript;
  gate: Gate;
  specs: ToolSpecs;
  todos: Todo[];
  emit: Emit;
  log: Log;
  /** Remembers the model for new sessions of the project. */
  rememberModel(model: ModelRef): Promise<void>;
  lastUsedModel: ModelRef | undefined;
  /** Told when a turn was answered. Must not throw. */
  onTurnEnd(): void;
}

/** One live conversation: its turns in order, who answers them, and how they are stopped. */
export class Session {
  readonly id: SessionId;
  readonly project: Project;
  readonly transcript: Transcript;
  readonly #deps: SessionDeps;
  readonly #seen: SeenFiles = new Map<string, string>();
  readonly #waiting: Waiting[] = [];
  readonly #steering: PromptInput[] = [];
  #info: SessionInfo;
  #todos: Todo[];
  /** Tokens in the model's context after its newest call. */
  #used: number | undefined;
  #running: { abort: AbortController; ended: Promise<void> } | undefined;
  #background = new AbortController();

  constructor(deps: SessionDeps) {
    this.#deps = deps;
    this.id = deps.info.id;
    this.project = deps.project;
    this.transcript = deps.transcript;
    this.#info = deps.info;
    this.#todos = deps.todos;
    this.#used = usedContext(deps.transcript);
  }

  get info(): SessionInfo {
    return this.#info;
  }

  get todos(): readonly Todo[] {
    return this.#todos;
  }

  /** Context in use after the newest model call, with the window of the model that would answer now. */
  get usage(): Usage | undefined {
    if (this.#used === undefined) return undefined;
    return { used: this.#used, size: this.model?.limit.context, cost: this.#info.cost };
  }

  get agent(): Agent {
    const { agents, defaultAgent } = this.project;
    const agent = agents.get(this.#info.agent) ?? agents.get(defaultAgent);
    if (agent === undefined) throw new Error(`no agent ${defaultAgent}`);
    return agent;
  }

  /** The model that would answer now, if one can be chosen. */
  get model(): Model | undefined {
    const choice = this.#chooseModel(this.agent, this.#info.model);
    return "code" in choice ? undefined : choice;
  }

  get isBusy(): boolean {
    return this.#running !== undefined || this.#waiting.length > 0;
  }

  /** Queues the message; the promise is for its own turn. Turns run one after the other. */
  prompt(input: PromptInput): Promise<TurnResult> {
    const waiting = { input, result: deferred<TurnResult>() };
    this.#waiting.push(waiting);
    if (this.#running === undefined) this.#runWaiting();
    return waiting.result.promise;
  }

  /** Puts a message into the running turn. False when none runs. */
  steer(input: PromptInput): boolean {
    if (this.#running === undefined || this.#running.abort.signal.aborted) return false;
    this.#steering.push(input);
    return true;
  }

  /** Ends the running turn and all that wait; without one it does nothing. */
  cancel(): void {
    for (const { result } of this.#waiting.splice(0)) result.resolve({ end: "cancelled", tokens: noTokens });
    this.#running?.abort.abort();
  }

  async setAgent(name: string): Promise<void> {
    const agent = this.project.agents.get(name);
    if (agent === undefined || agent.hidden || agent.mode === "subagent") {
      throw new UserError(`There is no mode "${name}".`);
    }
    if (name === this.#info.agent) return;
    await this.#save({ agent: name });
    await this.#deps.emit({ sessionId: this.id, type: "agent", agent: name });
  }

  /** The client's explicit choice; it stands above what agents and configuration say. */
  async setModel(model: ModelRef): Promise<void> {
    if (this.project.models.find(model) === undefined) {
      throw new UserError(`There is no model "${model.provider}/${model.model}".`);
    }
    await this.#save({ model });
    await this.#deps.rememberModel(model);
    await this.#deps.emit({ sessionId: this.id, type: "model", model });
  }

  async setTitle(title: string, source: "fallback" | "generated" | "person"): Promise<void> {
    if (this.#info.titleSource === "person" && source !== "person") return;
    await this.#save({ title, titleSource: source });
    await this.#deps.emit({ sessionId: this.id, type: "title", title, updatedAt: this.#info.time.updated });
  }

  async setDirectories(additionalDirectories: string[]): Promise<void> {
    await this.#save({ additionalDirectories });
  }

  /** Cancels what runs, waits for it, frees the session. */
  async close(): Promise<void> {
    this.cancel();
    this.#background.abort();
    await this.#running?.ended;
    this.#deps.gate.close();
    await this.#deps.writer.close();
  }

  #runWaiting(): void {
    const next = this.#waiting.shift();
    if (next === undefined) return;
    const abort = new AbortController();
    const ended = this.#runOne(next, abort.signal).finally(() => {
      this.#running = undefined;
      this.#runWaiting();
    });
    this.#running = { abort, ended };
  }

  async #runOne({ input, result }: Waiting, signal: AbortSignal): Promise<void> {
    const turn = this.#turn(input, signal).catch((error: unknown) => this.#broken(error));
    const limit = afterAbort(signal, cancelLimitMs);
    const ended = await Promise.race([turn, limit.promise]);
    limit.stop();
    result.resolve(ended ?? { end: "cancelled", tokens: noTokens });
    this.#deps.onTurnEnd();
  }

  async #turn(input: PromptInput, signal: AbortSignal): Promise<TurnResult> {
    const called = parseCommand(textOf(input));
    const effect = called?.command.effect;
    if (effect?.kind === "answer") return this.#answer(input, effect, called?.rest ?? "");
    const context = this.#toolContext(signal);
    if (effect?.kind === "compact") await this.#askToCompact(input, called?.rest ?? "");
    else {
      const said = effect === undefined ? input : withPrompt(input, effect.template, called?.rest ?? "");
      await this.#addUserMessage(said, context);
      await this.#giveTitle(textOf(input), signal);
    }
    if (signal.aborted) return { end: "cancelled", tokens: noTokens };
    const { runTurn } = await import("./turn.ts");
    const result = await runTurn(
      {
        ...this.#deps,
        context,
        takeSteering: () => this.#takeSteering(context),
        modelFor: (message) => this.#modelFor(message),
        onStep: (outcome) => this.#account(outcome),
        onCompacted: (cost, left) => this.#spend(cost, left),
      },
      signal,
    );
    await this.#deps.writer.flush();
    return signal.aborted ? { end: "cancelled", tokens: result.tokens } : result;
  }

  async #askToCompact(input: PromptInput, instruction: string): Promise<void> {
    const { transcript, project, model } = this;
    const wish = { auto: false, said: textOf(input), instruction, model };
    await requestCompaction({ transcript, project }, this.#userInfo(input), wish);
  }

  /** Question and answer stand in the session for the person; the model sees neither. */
  async #answer(input: PromptInput, command: AnswerEffect, rest: string): Promise<TurnResult> {
    const question: UserInfo = { ...this.#userInfo(input), system: undefined };
    await this.transcript.addMessage(question);
    await this.transcript.putPart(question.id, ignoredText(textOf(input)));
    await this.transcript.seal(question.id);
    const info: AssistantInfo = {
      id: this.transcript.newMessageId(),
      sessionId: this.id,
      role: "assistant",
      parentId: question.id,
      time: { created: Date.now() },
      agent: question.agent,
      model: { provider: "fairlead", model: "command" },
      cost: 0,
      tokens: noTokens,
      finish: "stop",
    };
    await this.transcript.addMessage(info);
    await this.transcript.putPart(info.id, ignoredText(await command.run(this, rest)));
    await this.transcript.complete(info);
    return { end: "finished", tokens: noTokens };
  }

  #broken(error: unknown): TurnResult {
    const code = error instanceof UserError ? "storage" : "internal";
    this.#deps.log.error("a turn broke", { sessionId: this.id, error: messageOf(error) });
    return { end: "failed", error: { code, message: messageOf(error), retryable: false }, tokens: noTokens };
  }

  async #addUserMessage(input: PromptInput, context: ToolContext, reminder?: string): Promise<void> {
    const info = this.#userInfo(input);
    const { toParts } = await import("./attachments.ts");
    const parts = await toParts(input.blocks, context);
    const reminders = [reminder, planReminder(this.agent.name, this.#previousAgent())].filter(
      (text) => text !== undefined,
    );
    await this.transcript.addMessage(info);
    for (const part of [...parts, ...reminders.map(synthetic)]) await this.transcript.putPart(info.id, part);
    await this.transcript.seal(info.id);
    await this.#save({});
  }

  #userInfo(input: PromptInput): UserInfo {
    return {
      id: this.transcript.newMessageId(),
      sessionId: this.id,
      role: "user",
      time: { created: Date.now() },
      agent: this.agent.name,
      ...(this.#info.model && { model: this.#info.model }),
      ...(input.system && { system: input.system }),
    };
  }

  #previousAgent(): string | undefined {
    return this.transcript.messages.findLast(({ info }) => info.role === "user")?.info.agent;
  }

  async #takeSteering(context: ToolContext): Promise<void> {
    for (const input of this.#steering.splice(0)) await this.#addUserMessage(input, context, steerReminder());
  }

  #modelFor(message: UserInfo): Model | AgentError {
    const agent = this.project.agents.get(message.agent) ?? this.agent;
    return this.#chooseModel(agent, message.model);
  }

  #chooseModel(agent: Agent, chosen: ModelRef | undefined): Model | AgentError {
    const { project, lastUsedModel } = this.#deps;
    return chooseModel(project, { chosen, agent: agent.model, lastUsed: lastUsedModel });
  }

  async #account({ tokens, cost }: StepOutcome): Promise<void> {
    const used = contextTokens(tokens);
    await this.#spend(cost, used > 0 ? used : this.#used);
  }

  /** Counts dollars and says how full the context is now. */
  async #spend(cost: number, used: number | undefined): Promise<void> {
    await this.#save({ cost: this.#info.cost + cost });
    this.#used = used;
    const { usage } = this;
    if (usage !== undefined) await this.#deps.emit({ sessionId: this.id, type: "usage", usage });
  }

  /** A fallback at once, a better one from a model beside the turn. */
  async #giveTitle(text: string, signal: AbortSignal): Promise<void> {
    if (this.#info.title !== undefined || text === "") return;
    await this.setTitle(fallbackTitle(text), "fallback");
    const agent = this.project.agents.get("title");
    const { small_model } = this.project.config;
    const model = (small_model && this.project.models.findByName(small_model)) || this.model;
    if (agent === undefined || model === undefined) return;
    const either = AbortSignal.any([signal, this.#background.signal]);
    const { models, retryPolicy } = this.project;
    const deps = { models, retryPolicy, model, agent };
    void generateTitle(deps, { sessionId: this.id, text }, either)
      .then(async ({ title, cost }) => {
        if (either.aborted) return;
        await this.#save({ cost: this.#info.cost + cost });
        if (title !== undefined) await this.setTitle(title, "generated");
      })
      .catch((error: unknown) =>
        this.#deps.log.warn("no title", { sessionId: this.id, error: messageOf(error) }),
      );
  }

  async #save(change: Partial<SessionInfo>): Promise<void> {
    this.#info = { ...this.#info, ...change, time: { ...this.#info.time, updated: Date.now() } };
    this.#deps.writer.saveInfo(this.#info);
  }

  #toolContext(signal: AbortSignal): ToolContext {
    return {
      sessionId: this.id,
      agent: this.agent.name,
      workspace: this.project.workspace,
      seen: this.#seen,
      todos: this.#todoList(),
      signal,
    };
  }

  #todoList(): TodoList {
    return {
      read: () => this.#todos,
      write: async (todos) => {
        this.#todos = todos;
        this.#deps.writer.saveTodos(todos);
        await this.#deps.emit({ sessionId: this.id, type: "todos", todos });
      },
    };
  }
}

interface Waiting {
  input: PromptInput;
  result: Deferred<TurnResult>;
}

/** Resolves with undefined when the limit has passed since the signal aborted. */
function afterAbort(signal: AbortSignal, limitMs: number): { promise: Promise<undefined>; stop(): void } {
  const stop = new AbortController();
  const aborted = new Promise<void>((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve(), { once: true, signal: stop.signal });
  });
  const promise = aborted.then(async () => {
    await sleep(limitMs, stop.signal);
    return undefined;
  });
  return { promise, stop: () => stop.abort() };
}

function synthetic(text: string): Part {
  return { id: newPartId(), type: "text", text, synthetic: true };
}

function ignoredText(text: string): Part {
  return { id: newPartId(), type: "text", text, ignored: true };
}

/** The person sees the command as it was written, the model reads what it stands for. */
function withPrompt(input: PromptInput, template: string, rest: string): PromptInput {
  const blocks = input.blocks.map((block) =>
    block.type === "text" ? { ...block, audience: "person" as const } : block,
  );
  return {
    ...input,
    blocks: [...blocks, { type: "text", text: commandPrompt(template, rest), audience: "model" }],
  };
}

function usedContext({ messages }: Transcript): number | undefined {
  const used = messages.map(({ info }) => (info.role === "assistant" ? contextTokens(info.tokens) : 0));
  return used.findLast((tokens) => tokens > 0);
}
