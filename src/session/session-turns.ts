import { errorFields } from "../base/error-fields.ts";
import { messageOf, UserError } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import type { Emit } from "../message/event.ts";
import type { SessionId } from "../message/ids.ts";
import type { SessionHooks } from "../hook/session-hooks.ts";
import type { Inquire } from "../message/inquiry.ts";
import type { SessionServers } from "../mcp/session-servers.ts";
import type { Approvals } from "../permission/approvals.ts";
import type { TraceContext } from "../message/trace-context.ts";
import { asksForEdits } from "../permission/judge.ts";
import type { Decider } from "../permission/gate.ts";
import type { JsonStore } from "../storage/json/json-store.ts";
import type { SessionWriter } from "../storage/session-store.ts";
import type { SessionDiff } from "../conversation/session-diff.ts";
import type { Transcript } from "../conversation/transcript.ts";
import type { SessionEvents } from "../session-state/session-events.ts";
import { SeenFiles } from "../tool/seen-files.ts";
import type { ToolContext } from "../tool/tool.ts";
import { RefusedMedia } from "../model/request/refused-media.ts";
import type { ParsedCommand, CommandContext } from "../slash-commands/commands.ts";
import type { Project } from "../conversation/project.ts";
import { type PromptInput, subjectOf } from "../conversation/prompt-input.ts";
import type { SessionServices } from "./session-services.ts";
import type { AgentOffers } from "../tool-calls/tool-set.ts";
import type { ContextUse } from "../turn/context-use.ts";
import type { SentRequests } from "../context/sent-requests.ts";
import type { FrozenPrompts } from "../turn/frozen-prompts.ts";
import { ShownInstructions } from "../context/shown-instructions.ts";
import { addTokens, noTokens, type TurnResult } from "../conversation/turn-result.ts";
import type { AuthorChanges } from "../workspace/recent/recent-changes.ts";
import type { AgentOverride } from "../user-input/user-messages.ts";

export interface SessionTurnsDeps {
  sessionId: SessionId;
  /** Whether the session runs a task. Prompts of tasks contain no commands. */
  isChild: boolean;
  transcript: Transcript;
  diff: SessionDiff;
  writer: SessionWriter;
  /** The store's other files. */
  files: JsonStore;
  gate: Decider;
  approvals: Approvals;
  servers: SessionServers;
  /** Shows the model's questions to the user. */
  inquire: Inquire;
  emit: Emit;
  /** Resolves when the client can receive more. */
  waitUntilReady: () => Promise<void>;
  events: SessionEvents;
  log: Log;
  /** Stores that the project is in use. */
  noteSeen(): Promise<void>;
  /** Recent changes by other sessions. */
  recent: AuthorChanges;
}

/** Runs the turns of a session: parses commands, stores the message, and runs turns until no message is left. */
export class SessionTurns {
  readonly #deps: SessionTurnsDeps;
  readonly #services: SessionServices;
  readonly #commandContext: CommandContext;
  readonly #seen = new SeenFiles();
  readonly #shown = new ShownInstructions();
  #offers: AgentOffers | undefined;
  readonly #refusedMedia = new RefusedMedia();
  #sent: SentRequests | undefined;
  #prompts: FrozenPrompts | undefined;
  #hooks: { openedBy: Project["openHooks"]; hooks: SessionHooks } | undefined;
  /** Whether `session.created` is still to be sent; plugins load with the first turn. */
  #isNew: boolean;
  #isNotedAsSeen = false;
  /** Models whose context window was already checked. */
  readonly #warned = new Set<string>();

  constructor(deps: SessionTurnsDeps, services: SessionServices, commandContext: CommandContext) {
    this.#deps = deps;
    this.#services = services;
    this.#commandContext = commandContext;
    this.#isNew = deps.transcript.messages.length === 0;
  }

  /** Runs the turn of a message. Never rejects: errors become a failed result. */
  run(input: PromptInput, signal: AbortSignal): Promise<TurnResult> {
    return this.#turn(input, signal).catch((error: unknown) => this.#toFailure(error));
  }

  /** Estimates what fills the context window of the next request; undefined without a model. */
  async contextUse(signal: AbortSignal): Promise<ContextUse | undefined> {
    const { infoStore, settings, instructions, project } = this.#services;
    const { agent, model } = settings;
    if (model === undefined) return undefined;
    await this.#deps.servers.settle(signal);
    const { measureContext } = await import("../turn/context-use.ts");
    return measureContext({
      project: project.current,
      offers: await this.#getOffers(),
      agent,
      model,
      instructions: await instructions.load(signal),
      givenPrompt: infoStore.info.givenPrompt,
      startedAt: infoStore.info.time.created,
      prompts: await this.#getPrompts(),
      messages: this.#deps.transcript.messages,
    });
  }

  /** Returns whether the conversation loads tools of MCP servers on demand. */
  async loadsToolsOnDemand(): Promise<boolean> {
    const { settings, project } = this.#services;
    const { agent, model } = settings;
    if (model === undefined) return false;
    const { splitTools } = await import("../turn/context-use.ts");
    const offers = await this.#getOffers();
    const { messages } = this.#deps.transcript;
    const { onDemand } = await splitTools({ project: project.current, offers, agent, model, messages });
    return onDemand.length > 0;
  }

  /** Returns the hooks of the session as its project configures them now; undefined without hooks. */
  async hooks(): Promise<SessionHooks | undefined> {
    const { project, infoStore, settings, warn } = this.#services;
    const { openHooks } = project.current;
    if (openHooks === undefined) return undefined;
    if (this.#hooks?.openedBy === openHooks) return this.#hooks.hooks;
    const { transcript, sessionId } = this.#deps;
    const hooks = await openHooks({
      sessionId,
      messages: () => transcript.messages,
      mode: () => ({ agent: settings.agent.name, approval: infoStore.info.approval ?? "ask" }),
      report: warn,
    });
    this.#hooks = { openedBy: openHooks, hooks };
    return hooks;
  }

  async #getOffers(): Promise<AgentOffers> {
    const { createOffers } = await import("../turn/turn.ts");
    this.#offers ??= createOffers();
    return this.#offers;
  }

  async #getPrompts(): Promise<FrozenPrompts> {
    const { createPrompts } = await import("../turn/turn.ts");
    this.#prompts ??= createPrompts(this.#deps.sessionId, this.#deps.files);
    return this.#prompts;
  }

  async #turn(input: PromptInput, signal: AbortSignal): Promise<TurnResult> {
    const { infoStore, settings, project, commands } = this.#services;
    // Read before waiting: an agent selected after the message only contributes its limits.
    const { agent, model, effort } = infoStore.info;
    settings.beginTurn();
    await project.refresh();
    const command = this.#parseCommand(input);
    const effect = command?.command.effect;
    if (effect?.kind === "answer") {
      const run = () => effect.run(this.#commandContext, command?.typed ?? "", signal);
      const result = await commands.answer(input, run, signal);
      this.#deps.diff.note(this.#deps.transcript.messages);
      await this.saveDiff();
      return result;
    }
    if (effect?.kind === "call") {
      const call = await effect.prepare(this.#commandContext, command?.typed ?? "");
      if (typeof call === "string") return commands.answer(input, async () => call, signal);
      await this.#services.history.settle();
      const called = await commands.call(input, call, await this.#toolContext(input.trace, signal));
      this.#deps.diff.note(this.#deps.transcript.messages);
      await this.saveDiff();
      return called;
    }
    const turnSignal = (await this.#prepare(signal)) ? signal : AbortSignal.abort();
    const context = await this.#toolContext(input.trace, turnSignal);
    const ended = await this.#addMessage(input, context, { agent, model, effort });
    if (ended !== undefined) return ended;
    const result = await this.#runToEnd(context, turnSignal);
    await this.#noteSeen();
    return turnSignal.aborted ? { end: "cancelled", tokens: result.tokens } : result;
  }

  /** Stores once that the project is in use. */
  async #noteSeen(): Promise<void> {
    if (this.#isNotedAsSeen) return;
    this.#isNotedAsSeen = true;
    try {
      await this.#deps.noteSeen();
    } catch (error) {
      this.#deps.log.warn("project not noted as seen", errorFields(error));
    }
  }

  /** Refreshes everything that a turn uses. Returns whether the turn continues. */
  async #prepare(signal: AbortSignal): Promise<boolean> {
    const { approvals, servers, isChild } = this.#deps;
    const { history, project, plugins } = this.#services;
    await history.settle();
    await approvals.refresh();
    const isSettled = await project.settleConsent(signal);
    // A task uses what its parent session was allowed.
    const isGoingOn = isSettled && (isChild || (await project.settleLanguageServers(signal)));
    await plugins.join(project.current);
    this.#notifyPlugins();
    await servers.settle(signal);
    return isGoingOn;
  }

  /** Notifies plugins that the session is busy and, before its first turn, that it was created. */
  #notifyPlugins(): void {
    const { events, sessionId } = this.#deps;
    if (this.#isNew) events.created(this.#services.infoStore.info);
    this.#isNew = false;
    events.status(sessionId, { type: "busy" });
  }

  /** Returns the command of a message, if it is one. */
  #parseCommand(input: PromptInput): ParsedCommand | undefined {
    return this.#deps.isChild ? undefined : this.#services.commands.parse(input);
  }

  /** Adds the user's message to the transcript. Returns a result if that already ends the turn. */
  async #addMessage(
    input: PromptInput,
    context: ToolContext,
    chosen: AgentOverride,
  ): Promise<TurnResult | undefined> {
    const { commands, messages, steering, title } = this.#services;
    const called = this.#parseCommand(input);
    const effect = called?.command.effect;
    if (effect?.kind === "compact") {
      const emptyResult = await commands.compact(input, called?.typed ?? "", context.signal);
      if (emptyResult === undefined) steering.open();
      return emptyResult;
    }
    if (called === undefined && !this.#deps.isChild) {
      const answer = await commands.answerUnknown(input, context.signal);
      if (answer !== undefined) return answer;
    }
    const message = called === undefined ? { input } : await commands.expand(input, called, context);
    if ("end" in message) return message;
    steering.open();
    const { agent = chosen.agent, model = chosen.model } = message;
    const override = { agent, model, effort: message.model?.variant ?? chosen.effort };
    await messages.add(message.input, context, override);
    if (!context.signal.aborted) await title.generate(subjectOf(input), context.signal);
    return undefined;
  }

  /**
   * Runs turns until no message added meanwhile is left. After an unsuccessful end such messages stay in the
   * transcript.
   */
  async #runToEnd(context: ToolContext, signal: AbortSignal): Promise<TurnResult> {
    const { messages, usage: usageTracker, steering } = this.#services;
    let result: TurnResult = { end: "cancelled", tokens: noTokens };
    usageTracker.beginTurn();
    while (!signal.aborted) {
      const next = await this.#runTurn(context, signal);
      result = { ...next, tokens: addTokens(result.tokens, next.tokens) };
      if (result.end !== "finished" || steering.isEmpty) break;
    }
    steering.close();
    await steering.flushTo(messages, context);
    return { ...result, tokens: addTokens(result.tokens, usageTracker.childTokens) };
  }

  async #runTurn(context: ToolContext, signal: AbortSignal): Promise<TurnResult> {
    const { transcript, diff, writer, gate, emit, log, waitUntilReady } = this.#deps;
    const {
      infoStore,
      settings,
      plugins,
      instructions,
      messages,
      usage: usageTracker,
      steering,
      openCalls,
    } = this.#services;
    const { runTurn, createSentRequests } = await import("../turn/turn.ts");
    const { project } = this.#services;
    this.#sent ??= createSentRequests((model, tokens) => project.current.models.costOf(model, tokens));
    const result = await runTurn(
      {
        transcript,
        gate,
        emit,
        log,
        waitUntilReady,
        project: this.#projectOfTurn(),
        context,
        openCalls,
        isTask: this.#deps.isChild,
        isLimitReached: () => usageTracker.isLimitReached,
        maySpend: (abort) => usageTracker.allows(abort),
        plugins: plugins.current,
        hooks: await this.hooks(),
        givenPrompt: infoStore.info.givenPrompt,
        startedAt: infoStore.info.time.created,
        offers: await this.#getOffers(),
        shown: this.#shown,
        instructions: (abort) => instructions.load(abort),
        takeJobReport: async () => (await this.#services.jobs.load()).takeReport(),
        takeResourceReport: () => this.#takeResourceReport(),
        takeSteering: () => steering.flushTo(messages, context),
        modelFor: (message) => settings.modelFor(message),
        refusedMedia: this.#refusedMedia,
        sent: this.#sent,
        prompts: await this.#getPrompts(),
        warned: this.#warned,
        windows: this.#services.windows,
        warn: this.#services.warn,
        noticeReread: async (text) => {
          if (infoStore.info.rereadNoticed === true) return;
          await infoStore.save({ rereadNoticed: true });
          this.#services.warn(text);
        },
        onStep: async (outcome) => {
          diff.note(transcript.messages);
          await usageTracker.countStep(outcome);
        },
        onCompacting: (isRunning) => infoStore.noteCompacting(isRunning),
        onCompacted: (tokens, cost, left) => usageTracker.countCompaction(tokens, cost, left),
      },
      signal,
    );
    await this.saveDiff();
    await writer.flush();
    return result;
  }

  /** Stores the counted changes of the session. */
  async saveDiff(): Promise<void> {
    const { diff, events } = this.#deps;
    const { infoStore } = this.#services;
    const summary = await diff.save();
    if (summary === undefined) return;
    await infoStore.save({ summary });
    events.diff(infoStore.info.id, diff.files);
  }

  async #takeResourceReport(): Promise<string | undefined> {
    // A task shares its parent's servers, and the parent's model read the resources.
    const changed = this.#deps.isChild ? [] : this.#deps.servers.takeChangedResources();
    if (changed.length === 0) return undefined;
    const { changedResourcesReminder } = await import("../conversation/reminders.ts");
    return changedResourcesReminder(changed);
  }

  /** Returns the project with the session's own settings. */
  #projectOfTurn(): Project {
    const project = this.#services.project.current;
    const { autoCompact } = this.#services.infoStore.info;
    if (autoCompact === undefined) return project;
    const { config } = project;
    return { ...project, config: { ...config, compaction: { ...config.compaction, auto: autoCompact } } };
  }

  async #toolContext(trace: TraceContext | undefined, signal: AbortSignal): Promise<ToolContext> {
    const { project, settings, steering, tasks, jobs, todos, infoStore } = this.#services;
    return {
      sessionId: this.#deps.sessionId,
      agent: settings.agent.name,
      workspace: project.current.workspace,
      seen: this.#seen,
      recent: this.#deps.recent,
      instructed: this.#shown.paths,
      todos,
      inquire: this.#deps.inquire,
      agents: {
        names: settings.agentNames,
        asksForEdits: (name) => asksForEdits(settings.agentNamed(name).rules),
        switchTo: async (name, edits) => {
          await settings.setAgent(name);
          if (edits === "ask") await settings.setApproval("ask");
          else if (edits === "accept" && (infoStore.info.approval ?? "ask") === "ask")
            await settings.setApproval("accept-edits");
          steering.handOver();
        },
      },
      tasks,
      jobs: await jobs.load(),
      trace,
      signal,
    };
  }

  #toFailure(error: unknown): TurnResult {
    this.#services.steering.close();
    const code = error instanceof UserError ? "storage" : "internal";
    this.#deps.log.error("turn failed unexpectedly", {
      sessionId: this.#deps.sessionId,
      ...errorFields(error),
    });
    return { end: "failed", error: { code, message: messageOf(error), retryable: false }, tokens: noTokens };
  }
}
