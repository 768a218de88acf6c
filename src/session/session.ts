import { deferred, type Deferred, orWhenAborted, sleep } from "../base/async.ts";
import { messageOf, UserError } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import type { Agent } from "../agent/agent.ts";
import { FetchedTexts } from "../instruction/fetched-texts.ts";
import type { Instruction } from "../instruction/instructions.ts";
import type { Emit, Usage } from "../message/event.ts";
import { newPartId, type SessionId } from "../message/ids.ts";
import type { Inquire } from "../message/inquiry.ts";
import type {
  AgentError,
  ApprovalMode,
  Message,
  ModelRef,
  SessionInfo,
  Todo,
  UserInfo,
} from "../message/message.ts";
import type { Part, Tokens } from "../message/part.ts";
import { takesMedium } from "../model/media.ts";
import type { GivenServers } from "../mcp/server-settings.ts";
import type { SessionServers } from "../mcp/session-servers.ts";
import type { Model } from "../model/model.ts";
import type { Plugins } from "../plugin/plugins.ts";
import { evaluate } from "../permission/evaluate.ts";
import type { Approvals } from "../permission/approvals.ts";
import type { Decider } from "../permission/gate.ts";
import type { SessionWriter } from "../storage/session-store.ts";
import type { AgentSwitch, SeenFiles, Tasks, TodoList, ToolContext } from "../tool/tool.ts";
import { Budget } from "./budget.ts";
import { type ChildSession, runTask } from "./child-session.ts";
import {
  type AnswerEffect,
  type Called,
  type Command,
  commandsOf,
  parseCommand,
  type PromptEffect,
} from "./commands.ts";
import { requestCompaction } from "./compaction.ts";
import { askConsent } from "./consent.ts";
import { contextTokens } from "./context-budget.ts";
import type { Decisions } from "./decisions.ts";
import { addAnswer, addQuestion } from "./exchange.ts";
import { chooseModel } from "./model-choice.ts";
import type { Project } from "./project.ts";
import { type PromptBlock, type PromptInput, taskBlock, textOf } from "./prompt-input.ts";
import type { Said } from "./heard-message.ts";
import { handOverReminder, planReminder, steerReminder } from "./reminders.ts";
import type { SessionDiff } from "./session-diff.ts";
import type { StepOutcome } from "./step.ts";
import { fallbackTitle, generateTitle } from "./title.ts";
import type { ToolSpecs } from "./tool-set.ts";
import type { Transcript } from "./transcript.ts";
import { addTokens, noTokens, type TurnResult } from "./turn-result.ts";
import { Undo } from "./undo.ts";

/** After a cancel the turn's answer comes within this time, whatever a provider or a tool does (acp.md 1). */
const cancelLimitMs = 2_500;
/** Problems that are told when changed files bring them; /reload lists more. */
const newProblemsLimit = 5;

export interface SessionDeps {
  info: SessionInfo;
  project: Project;
  writer: SessionWriter;
  transcript: Transcript;
  gate: Decider;
  approvals: Approvals;
  decisions: Decisions;
  /** The project as it is now. */
  reopenProject(): Promise<Project>;
  /** Puts the model's questions to the person. */
  inquire: Inquire;
  /** Its MCP servers; it lets go of them when it is closed. */
  servers: SessionServers;
  specs: ToolSpecs;
  todos: Todo[];
  emit: Emit;
  log: Log;
  /** Remembers the model for new sessions of the project. */
  rememberModel(model: ModelRef): Promise<void>;
  lastUsedModel: ModelRef | undefined;
  diff: SessionDiff;
  /** All messages of the session from the newest back, those that are taken back among them. */
  messagesFromNewest: () => AsyncIterable<Message>;
  /** Told when a turn was answered. Must not throw. */
  onTurnEnd(): void;
  /** The session that this one works for, if it is a child. */
  parent: Session | undefined;
  /** Opens a child of this session. Throws {@link UserError} where it cannot. */
  openChild(child: ChildSession, parent: Session): Promise<Session>;
}

/** One live conversation: its turns in order, who answers them, and how they are stopped. */
export class Session {
  readonly id: SessionId;
  readonly transcript: Transcript;
  /** The way back to earlier turns, and forth again. */
  readonly history: Undo;
  readonly #deps: SessionDeps;
  readonly #seen: SeenFiles = new Map<string, string>();
  readonly #instructed = new Set<string>();
  readonly #waiting: Waiting[] = [];
  readonly #steering: PromptInput[] = [];
  /** Whether what is put into {@link #steering} now reaches the model in the running turn. */
  #isSteerable = false;
  /** Whether a call has handed the running turn over to another agent, which no message in the transcript says yet. */
  #isHandedOver = false;
  #project: Project;
  #isConsentSettled = false;
  #budget: Budget;
  /** What the running turn and its tasks have used. */
  #ofTurn = { cost: 0, childTokens: noTokens };
  readonly #children = new Set<Session>();
  #info: SessionInfo;
  #todos: Todo[];
  /** Tokens in the model's context after its newest call. */
  #used: number | undefined;
  readonly #closed = deferred<void>();
  #running: { abort: AbortController; ended: Promise<void> } | undefined;
  #background = new AbortController();
  readonly #fetched: FetchedTexts;
  readonly #toldNotes = new Set<string>();
  /** The plugins that take part, and of which state of the project they are. */
  #joined: { plugins: Plugins | undefined; project: Project; leave: () => void } | undefined;

  constructor(deps: SessionDeps) {
    this.#deps = deps;
    this.id = deps.info.id;
    this.#project = deps.project;
    this.#fetched = deps.parent ? deps.parent.#fetched : new FetchedTexts((url) => this.#fetchText(url));
    this.transcript = deps.transcript;
    this.#info = deps.info;
    this.#todos = deps.todos;
    this.#used = usedContext(deps.transcript);
    this.#budget = new Budget(deps.project.config.max_cost);
    this.history = new Undo({
      ...deps,
      workspace: deps.project.workspace,
      revert: () => this.#info.revert,
      save: (change) => this.#save(change),
      onShown: () => this.#spend(0, usedContext(this.transcript)),
    });
  }

  /** Resolves when it was closed. */
  get closed(): Promise<void> {
    return this.#closed.promise;
  }

  /** Takes a new session for this process, which was put off until its id is told. What is lost then, the next write tells. */
  claim(): void {
    const { writer, log } = this.#deps;
    writer
      .claim()
      .catch((error: unknown) => log.warn("a new session is not ours", { error: messageOf(error) }));
  }

  get project(): Project {
    return this.#project;
  }

  /** Those that take part now. */
  get plugins(): Plugins | undefined {
    return this.#joined?.plugins;
  }

  /** What can be called with a slash. */
  get commands(): readonly Command[] {
    return commandsOf(this.#project, this.servers.prompts);
  }

  get servers(): SessionServers {
    return this.#deps.servers;
  }

  get decisions(): Decisions {
    return this.#deps.decisions;
  }

  get approvals(): Approvals {
    return this.#deps.approvals;
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
    const choice = this.#chooseModel(this.agent, this.#info);
    return "code" in choice ? undefined : choice;
  }

  /** The reasoning effort with which the model would answer now; undefined is the model's own. */
  get effort(): string | undefined {
    return this.model?.ref.variant;
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
    if (!this.#isSteerable || this.#running?.abort.signal.aborted === true) return false;
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
    if (agent === undefined || !isSelectable(agent)) {
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

  /** How much the model thinks from now on; undefined leaves it to the model, the agent or the configuration. */
  async setEffort(effort: string | undefined): Promise<void> {
    await this.#save({ effort });
    await this.#deps.emit({ sessionId: this.id, type: "model", model: this.#info.model });
  }

  /** How much goes without asking from now on; questions that it settles are taken back. */
  async setApproval(approval: ApprovalMode): Promise<void> {
    if (approval === (this.#info.approval ?? "ask")) return;
    await this.#save({ approval });
    this.#deps.gate.reconsider();
    await this.#deps.emit({ sessionId: this.id, type: "approval", approval });
  }

  /** Whether a full context is summed up by itself. */
  get autoCompact(): boolean {
    return this.#info.autoCompact ?? this.#project.config.compaction?.auto !== false;
  }

  async setAutoCompact(autoCompact: boolean): Promise<void> {
    if (autoCompact === this.autoCompact) return;
    await this.#save({ autoCompact });
    await this.#deps.emit({ sessionId: this.id, type: "options" });
  }

  async setTitle(title: string, source: "fallback" | "generated" | "person"): Promise<void> {
    if (this.#info.titleSource === "person" && source !== "person") return;
    await this.#save({ title, titleSource: source });
    await this.#deps.emit({ sessionId: this.id, type: "title", title, updatedAt: this.#info.time.updated });
  }

  /** Works from here on with what the project's files say now, and tells what became another by it. */
  async reload(): Promise<Project> {
    const before = this.#shown();
    const { consent, config } = this.#project;
    this.#project = await this.#deps.reopenProject();
    // A child uses its parent's.
    if (this.#deps.parent === undefined) this.servers.configure(this.#project.config);
    if (JSON.stringify(this.#project.consent?.wants) !== JSON.stringify(consent?.wants))
      this.#isConsentSettled = false;
    if (JSON.stringify(this.#project.config.max_cost) !== JSON.stringify(config.max_cost))
      this.#budget = new Budget(this.#project.config.max_cost);
    const now = this.#shown();
    const { emit } = this.#deps;
    if (now.agent !== before.agent) await emit({ sessionId: this.id, type: "agent", agent: now.agent });
    else if (now.pickers !== before.pickers)
      await emit({ sessionId: this.id, type: "model", model: this.#info.model });
    if (now.commands !== before.commands) await emit({ sessionId: this.id, type: "commands" });
    return this.#project;
  }

  /** Takes the MCP servers that the editor gives from now on. */
  setServers(given: GivenServers): void {
    this.servers.give(given);
  }

  /** Writes the conversation as it stands into a new file of the workspace. Answers what was done. */
  async exportTo(file: string): Promise<string> {
    const { runExport } = await import("./export-command.ts");
    await this.#deps.writer.flush();
    const { messagesFromNewest } = this.#deps;
    const { workspace } = this.#project;
    return runExport({ info: this.#info, workspace, messagesFromNewest }, file);
  }

  async setDirectories(additionalDirectories: string[]): Promise<void> {
    await this.#save({ additionalDirectories });
  }

  /** Resolves when everything so far is on disk. */
  stored(): Promise<void> {
    return this.#deps.writer.flush();
  }

  /** Cancels what runs, waits for it, frees the session. */
  async close(): Promise<void> {
    this.cancel();
    this.#background.abort();
    await this.#running?.ended;
    await Promise.all([...this.#children].map((child) => child.closed));
    this.#joined?.leave();
    if (this.#deps.parent === undefined) this.servers.close();
    this.#deps.gate.close();
    await this.#deps.writer.close();
    this.#closed.resolve();
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
    this.#tellTurnEnd(ended);
    this.#deps.onTurnEnd();
  }

  #tellTurnEnd(ended: TurnResult | undefined): void {
    const properties = { sessionID: this.id };
    if (ended?.end === "failed")
      this.plugins?.event({ type: "session.error", properties: { ...properties, error: ended.error } });
    this.plugins?.event({ type: "session.idle", properties });
  }

  async #turn(input: PromptInput, signal: AbortSignal): Promise<TurnResult> {
    // As it is now: a mode that is chosen behind the message is not meant for it.
    const { agent, model, effort } = this.#info;
    const chosen = { agent, model, effort };
    await this.#refresh();
    const early = this.#called(input);
    if (early?.command.effect.kind === "answer")
      return this.#answer(input, early.command.effect, early.typed, signal);
    await this.history.settle();
    await this.#deps.approvals.refresh();
    await this.#settleConsent(signal);
    await this.#joinPlugins();
    await this.servers.settle(signal);
    const context = this.#toolContext(signal);
    const ended = await this.#ask(input, this.#called(input), context, chosen);
    if (ended !== undefined) return ended;
    const result = await this.#runToEnd(context, signal);
    return signal.aborted ? { end: "cancelled", tokens: result.tokens } : result;
  }

  /** Puts what the person wants into the transcript. A result where that ends the turn already. */
  async #ask(
    input: PromptInput,
    called: Called | undefined,
    context: ToolContext,
    chosen: Wish,
  ): Promise<TurnResult | undefined> {
    const effect = called?.command.effect;
    if (effect?.kind === "compact") {
      this.#isSteerable = true;
      await this.#askToCompact(input, called?.typed ?? "");
      return undefined;
    }
    const isTask = effect?.kind === "template" && this.#isTask(effect);
    const isPrompt = effect !== undefined && effect.kind !== "answer";
    const said = isPrompt ? await this.#fill(input, effect, called?.typed ?? "", context) : { input };
    if ("end" in said) return said;
    this.#isSteerable = true;
    const { agent, model } = effect?.kind === "template" && !isTask ? effect : {};
    const wish = {
      agent: agent ?? chosen.agent,
      model: model ?? chosen.model,
      effort: model?.variant ?? chosen.effort,
    };
    await this.#addUserMessage(said.input, context, wish);
    if (!context.signal.aborted) await this.#giveTitle(textOf(input), context.signal);
    return undefined;
  }

  /** The person sees the command as it was written, the model reads what it stands for. */
  async #fill(
    input: PromptInput,
    effect: PromptEffect,
    typed: string,
    context: ToolContext,
  ): Promise<{ input: PromptInput } | TurnResult> {
    const { callDeps } = await import("./turn.ts");
    const { commandPrompt } = await import("./command-prompt.ts");
    const agent = this.#agentNamed(effect.kind === "template" ? effect.agent : undefined);
    const { plugins } = this;
    const calls = callDeps({ ...this.#deps, project: this.#project, context, plugins }, agent);
    const tools = await this.#project.tools();
    const prompt = await commandPrompt({ ...calls, tools, signal: context.signal }, effect, typed);
    if (prompt.outcome === "ready")
      return {
        input: withPrompt(input, this.#asTask(prompt.blocks, effect, this.#called(input)?.command.name)),
      };
    const question: UserInfo = { ...this.#userInfo(input), system: undefined };
    await addQuestion(this.transcript, question, textOf(input));
    if (prompt.outcome === "cancelled") return { end: "cancelled", tokens: noTokens };
    await addAnswer(this.transcript, question, `The command was not carried out. ${prompt.reason}`);
    return { end: "finished", tokens: noTokens };
  }

  /** Whether a command runs beside the conversation: where it says so, or names an agent that only does tasks. */
  #isTask({ agent, subtask }: PromptEffect & { kind: "template" }): boolean {
    if (agent !== undefined && this.project.agents.get(agent)?.mode === "subagent") return subtask !== false;
    return subtask === true;
  }

  #asTask(blocks: readonly PromptBlock[], effect: PromptEffect, command = "task"): readonly PromptBlock[] {
    if (effect.kind !== "template" || !this.#isTask(effect)) return blocks;
    const { agent = this.agent.name, model } = effect;
    return [taskBlock(blocks, { agent, model, command }), ...blocks.filter(({ type }) => type !== "text")];
  }

  /** What a task says to its agent is no command. */
  #called(input: PromptInput): Called | undefined {
    if (this.#deps.parent !== undefined) return undefined;
    return parseCommand(textOf(input), this.commands);
  }

  /** Notices changed files of configuration; where they cannot be read the session goes on as it was. */
  async #refresh(): Promise<void> {
    const known = new Set(this.#project.problems);
    try {
      if (!(await this.#project.hasChanged())) return;
      const { problems } = await this.reload();
      for (const text of problems.filter((problem) => !known.has(problem)).slice(0, newProblemsLimit))
        await this.#deps.emit({ sessionId: this.id, type: "notice", severity: "warning", text });
    } catch (error) {
      const text = `The configuration could not be read again: ${messageOf(error)}. The session goes on with what it was.`;
      await this.#deps.emit({ sessionId: this.id, type: "notice", severity: "warning", text });
    }
  }

  /** What the editor shows of the project, to compare. */
  #shown() {
    const { agents, models } = this.#project;
    const agent = this.agent.name;
    const listed = [...agents.values()].map(({ name, description, mode, hidden }) => {
      return { name, description, mode, hidden };
    });
    const names = models.list().map(({ ref, name, variants }) => ({ ref, name, variants }));
    const commands = this.commands.map(({ name, description, hint }) => ({ name, description, hint }));
    return {
      agent,
      pickers: JSON.stringify({ listed, names, model: this.model?.ref }),
      commands: JSON.stringify(commands),
    };
  }

  async #fetchText(url: string): Promise<string> {
    const request = { permission: "webfetch", subjects: [{ text: url }], always: [] };
    const { action, reason } = evaluate(request, this.agent.rules);
    if (action === "deny") throw new UserError(reason);
    return this.#project.fetchText(url);
  }

  /** As they are now. What is left out of them is told once. */
  async #instructions(signal: AbortSignal): Promise<readonly Instruction[]> {
    const loading = this.#project.instructions(this.#fetched);
    const loaded = await orWhenAborted(loading, signal, undefined);
    const { instructions, notes } = loaded ?? { instructions: [], notes: [] };
    const isNew = (note: string) => !this.#toldNotes.has(note);
    for (const note of this.#deps.parent === undefined ? notes.filter(isNew) : []) {
      this.#toldNotes.add(note);
      const text = `Instructions: ${note}`;
      await this.#deps.emit({ sessionId: this.id, type: "notice", severity: "warning", text });
    }
    return instructions;
  }

  /** Has the project's plugins take part from here on, those of its files as they are now. */
  async #joinPlugins(): Promise<void> {
    const project = this.#project;
    if (this.#joined?.project === project) return;
    const { parent, emit, log } = this.#deps;
    const tell = (text: string) => {
      // Whom a child works for is told the same.
      if (parent !== undefined) return;
      emit({ sessionId: this.id, type: "notice", severity: "warning", text }).catch((error: unknown) =>
        log.warn("a notice was lost", { error: messageOf(error) }),
      );
    };
    const plugins = await project.plugins().catch((error: unknown) => {
      tell(`Plugins and tools of yours could not be started: ${messageOf(error)}`);
      return undefined;
    });
    const before = this.#joined;
    if (before !== undefined && before.plugins === plugins) {
      this.#joined = { ...before, project };
      return;
    }
    this.#joined = { plugins, project, leave: plugins?.join(tell).leave ?? (() => {}) };
    before?.leave();
  }

  /** Asks once whether the project's own configuration may count, and works with it from here on where it may. */
  async #settleConsent(signal: AbortSignal): Promise<void> {
    const { consent } = this.#project;
    if (consent === undefined || this.#isConsentSettled) return;
    const asking = { ...this.#deps, sessionId: this.id, agent: this.agent.name };
    const answer = await askConsent(asking, consent, signal);
    this.#isConsentSettled = answer !== "cancelled";
    if (answer !== "accepted") return;
    await this.reload();
  }

  /** Runs until no message is left that came meanwhile. After any end but a good one they wait in the transcript. */
  async #runToEnd(context: ToolContext, signal: AbortSignal): Promise<TurnResult> {
    let result: TurnResult = { end: "cancelled", tokens: noTokens };
    this.#budget.beginTurn();
    this.#ofTurn = { cost: 0, childTokens: noTokens };
    while (!signal.aborted) {
      const next = await this.#runTurn(context, signal);
      result = { ...next, tokens: addTokens(result.tokens, next.tokens) };
      if (result.end !== "finished" || this.#steering.length === 0) break;
    }
    this.#isSteerable = false;
    this.#isHandedOver = false;
    await this.#takeSteering(context);
    return { ...result, tokens: addTokens(result.tokens, this.#ofTurn.childTokens) };
  }

  async #runTurn(context: ToolContext, signal: AbortSignal): Promise<TurnResult> {
    const { runTurn } = await import("./turn.ts");
    const result = await runTurn(
      {
        ...this.#deps,
        project: this.#projectOfTurn(),
        context,
        maySpend: (abort) => this.maySpend(abort),
        plugins: this.plugins,
        instructions: (abort) => this.#instructions(abort),
        takeSteering: async () => {
          await this.#takeHandOver();
          await this.#takeSteering(context);
        },
        modelFor: (message) => this.#modelFor(message),
        onStep: (outcome) => this.#account(outcome),
        onCompacted: async (tokens, cost, left) => {
          await this.#spend(cost, left);
          await this.#deps.parent?.countChild(tokens, cost);
        },
      },
      signal,
    );
    await this.#saveDiff();
    await this.#deps.writer.flush();
    return result;
  }

  /** The project with what this session sets otherwise. */
  #projectOfTurn(): Project {
    const project = this.#project;
    const { autoCompact } = this;
    if (this.#info.autoCompact === undefined) return project;
    const { config } = project;
    return { ...project, config: { ...config, compaction: { ...config.compaction, auto: autoCompact } } };
  }

  async #saveDiff(): Promise<void> {
    const summary = await this.#deps.diff.save();
    if (summary !== undefined) await this.#save({ summary });
  }

  async #askToCompact(input: PromptInput, instruction: string): Promise<void> {
    const { transcript, project, model } = this;
    const wish = { auto: false, said: textOf(input), instruction, model };
    await requestCompaction({ transcript, project }, this.#userInfo(input), wish);
  }

  /** Question and answer stand in the session for the person; the model sees neither. */
  async #answer(
    input: PromptInput,
    command: AnswerEffect,
    rest: string,
    signal: AbortSignal,
  ): Promise<TurnResult> {
    const question: UserInfo = { ...this.#userInfo(input), system: undefined };
    await addQuestion(this.transcript, question, textOf(input));
    await addAnswer(this.transcript, question, await command.run(this, rest, signal));
    return { end: signal.aborted ? "cancelled" : "finished", tokens: noTokens };
  }

  #broken(error: unknown): TurnResult {
    this.#isSteerable = false;
    const code = error instanceof UserError ? "storage" : "internal";
    this.#deps.log.error("a turn broke", { sessionId: this.id, error: messageOf(error) });
    return { end: "failed", error: { code, message: messageOf(error), retryable: false }, tokens: noTokens };
  }

  async #addUserMessage(
    input: PromptInput,
    context: ToolContext,
    wish: Wish = {},
    reminder?: string,
  ): Promise<void> {
    const info = { ...this.#userInfo(input, wish), ...(reminder !== undefined && { steering: true }) };
    const { toParts } = await import("./attachments.ts");
    const { rules } = this.#agentNamed(info.agent);
    const parts = await toParts(input.blocks, context, { rules, resources: this.servers });
    const said = await this.#heard({ info, parts }, context.signal);
    const reminders = [reminder, planReminder(info.agent, this.#previousAgent())].filter(
      (text) => text !== undefined,
    );
    await this.transcript.addMessage(said.info);
    for (const part of [...said.parts, ...reminders.map(synthetic)])
      await this.transcript.putPart(info.id, part);
    await this.transcript.seal(info.id);
    await this.#save({});
    await this.#tellUnseen(info, parts);
  }

  /** The person should not wonder why the model knows nothing of an image. */
  async #tellUnseen(info: UserInfo, parts: readonly Part[]): Promise<void> {
    const model = this.#modelFor(info);
    if ("code" in model) return;
    const files = parts.filter((part) => part.type === "file");
    const unseen = files.filter(({ url, mime }) => url.startsWith("data:") && !takesMedium(mime, model));
    if (unseen.length === 0) return;
    const names = unseen.map(({ filename, mime }) => filename ?? mime).join(", ");
    const text = `${model.name} cannot see ${names}. Choose a model that takes such files, or describe what is in them.`;
    await this.#deps.emit({ sessionId: this.id, type: "notice", severity: "warning", text });
  }

  async #heard(said: Said, signal: AbortSignal): Promise<Said> {
    const { plugins } = this;
    if (!plugins?.has("chat.message")) return said;
    const { heard } = await import("./heard-message.ts");
    return heard(plugins, said, signal);
  }

  #userInfo(input: PromptInput, wish: Wish = {}): UserInfo {
    const model = wish.model ?? this.#info.model;
    const effort = "effort" in wish ? wish.effort : this.#info.effort;
    return {
      id: this.transcript.newMessageId(),
      sessionId: this.id,
      role: "user",
      time: { created: Date.now() },
      agent: this.#agentNamed(wish.agent).name,
      ...(model && { model }),
      ...(effort !== undefined && { effort }),
      ...(input.system && { system: input.system }),
    };
  }

  /** The session's agent where it is not there, or no more. */
  #agentNamed(name: string | undefined): Agent {
    return (name === undefined ? undefined : this.project.agents.get(name)) ?? this.agent;
  }

  #previousAgent(): string | undefined {
    return this.transcript.messages.findLast(({ info }) => info.role === "user")?.info.agent;
  }

  /** A message of the program's own under the new agent, so that the transcript says who goes on. */
  async #takeHandOver(): Promise<void> {
    if (!this.#isHandedOver) return;
    this.#isHandedOver = false;
    const last = this.transcript.messages.findLast(({ info }) => info.role === "user")?.info;
    const system = last?.role === "user" ? last.system : undefined;
    const info = this.#userInfo({ blocks: [], ...(system && { system }) });
    await this.transcript.addMessage(info);
    const reminder = handOverReminder(last?.agent ?? info.agent, info.agent);
    await this.transcript.putPart(info.id, synthetic(reminder));
    await this.transcript.seal(info.id);
  }

  async #takeSteering(context: ToolContext): Promise<void> {
    for (const input of this.#steering.splice(0))
      await this.#addUserMessage(input, context, {}, steerReminder());
  }

  #modelFor(message: UserInfo): Model | AgentError {
    const agent = this.project.agents.get(message.agent) ?? this.agent;
    return this.#chooseModel(agent, message);
  }

  #chooseModel(agent: Agent, { model, effort }: Pick<UserInfo, "model" | "effort">): Model | AgentError {
    const { lastUsedModel } = this.#deps;
    return chooseModel(this.#project, { chosen: model, effort, agent, lastUsed: lastUsedModel });
  }

  async #account({ tokens, cost }: StepOutcome): Promise<void> {
    this.#deps.diff.note(this.transcript.messages);
    const used = contextTokens(tokens);
    await this.#spend(cost, used > 0 ? used : this.#used);
    await this.#deps.parent?.countChild(tokens, cost);
  }

  /** Whether another model call may be made, for this session or a child of it. Asks the person where a limit is reached. */
  maySpend(signal: AbortSignal): Promise<"yes" | "no" | "cancelled"> {
    const { parent } = this.#deps;
    if (parent !== undefined) return parent.maySpend(signal);
    const spent = { turn: this.#ofTurn.cost, session: this.#info.cost };
    return this.#budget.allows(spent, { ...this.#deps, sessionId: this.id, agent: this.agent.name }, signal);
  }

  /** What a child used counts here too. */
  async countChild(tokens: Tokens, cost: number): Promise<void> {
    this.#ofTurn.childTokens = addTokens(this.#ofTurn.childTokens, tokens);
    await this.#spend(cost, this.#used);
    await this.#deps.parent?.countChild(tokens, cost);
  }

  /** Counts dollars and says how full the context is now. */
  async #spend(cost: number, used: number | undefined): Promise<void> {
    this.#ofTurn.cost += cost;
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
    const model = await this.#modelForTitle();
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

  /** A small model that was configured is not replaced by another one: then the first words stay the title. */
  async #modelForTitle(): Promise<Model | undefined> {
    const { config, models } = this.project;
    if (config.small_model === undefined) return this.model && withoutEffort(this.model);
    const choice = models.chooseByName(config.small_model);
    if (choice.outcome === "found") return choice.model;
    const text = `No title is written. ${choice.error.message} It is "small_model" in the configuration.`;
    await this.#deps.emit({ sessionId: this.id, type: "notice", severity: "warning", text });
    return undefined;
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
      instructed: this.#instructed,
      todos: this.#todoList(),
      inquire: this.#deps.inquire,
      agents: this.#agentSwitch(),
      tasks: this.#tasks(),
      signal,
    };
  }

  #tasks(): Tasks {
    const agents = [...this.project.agents.values()];
    return {
      agents: agents.filter(({ hidden, mode }) => !hidden && mode !== "primary").map(({ name }) => name),
      isRequested: (agent) => this.#requests().some((part) => requestedBy(part) === agent),
      start: (task, run) => {
        const caller = this.transcript.messages.findLast(({ info }) => info.role === "assistant")?.info;
        const queued = this.#requests().find(
          (part) => part.type === "subtask" && part.command === task.command,
        );
        const parent = {
          ...this.#deps,
          id: this.id,
          depth: this.#depth,
          project: this.#project,
          agent: this.#agentNamed(caller?.agent),
          model: caller?.model,
          wishedModel: queued?.type === "subtask" ? queued.model : undefined,
          open: (child: ChildSession) => this.#openChild(child),
        };
        return runTask(parent, task, run);
      },
    };
  }

  get #depth(): number {
    return this.#deps.parent === undefined ? 0 : this.#deps.parent.#depth + 1;
  }

  /** What the person's newest message says of tasks. */
  #requests(): readonly Part[] {
    return this.transcript.messages.findLast(({ info }) => info.role === "user")?.parts ?? [];
  }

  async #openChild(child: ChildSession): Promise<Session> {
    const session = await this.#deps.openChild(child, this);
    this.#children.add(session);
    void session.closed.then(() => this.#children.delete(session));
    return session;
  }

  #agentSwitch(): AgentSwitch {
    const agents = [...this.project.agents.values()];
    return {
      names: agents.filter(isSelectable).map(({ name }) => name),
      switchTo: async (name) => {
        await this.setAgent(name);
        this.#isHandedOver = true;
      },
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

/** A title is not worth the thoughts that the work is. */
function withoutEffort(model: Model): Model {
  const { provider, model: id } = model.ref;
  return { ...model, ref: { provider, model: id } };
}

/** Whether a person may talk to it. */
function isSelectable({ hidden, mode }: Agent): boolean {
  return !hidden && mode !== "subagent";
}

/** Who answers one message, where it is not the session's agent and model. */
interface Wish {
  agent?: string | undefined;
  model?: ModelRef | undefined;
  effort?: string | undefined;
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

function requestedBy(part: Part): string | undefined {
  if (part.type === "agent") return part.name;
  return part.type === "subtask" ? part.agent : undefined;
}

function synthetic(text: string): Part {
  return { id: newPartId(), type: "text", text, synthetic: true };
}

function withPrompt(input: PromptInput, prompt: readonly PromptBlock[]): PromptInput {
  const blocks = input.blocks.map((block) =>
    block.type === "text" ? { ...block, audience: "person" as const } : block,
  );
  return { ...input, blocks: [...blocks, ...prompt] };
}

function usedContext({ messages }: Transcript): number | undefined {
  const used = messages.map(({ info }) => (info.role === "assistant" ? contextTokens(info.tokens) : 0));
  return used.findLast((tokens) => tokens > 0);
}
