import { errorFields } from "../base/error-fields.ts";
import { messageOf, UserError } from "../base/errors.ts";
import type { SeenFiles, ToolContext } from "../tool/tool.ts";
import { RefusedMedia } from "../model/request/refused-media.ts";
import type { ParsedCommand, CommandContext } from "../slash-commands/commands.ts";
import type { Project } from "../conversation/project.ts";
import { type PromptInput, subjectOf } from "../conversation/prompt-input.ts";
import type { SessionServices, SessionServicesDeps } from "./session-services.ts";
import { ShownInstructions } from "../context/shown-instructions.ts";
import { addTokens, noTokens, type TurnResult } from "../conversation/turn-result.ts";
import type { AgentOverride } from "../user-input/user-messages.ts";

/** The way of a message through a session, from what it calls to the answer and to what came meanwhile. */
export class SessionTurns {
  readonly #deps: SessionServicesDeps;
  readonly #services: SessionServices;
  /** What commands work with. */
  readonly #commandContext: CommandContext;
  readonly #seen: SeenFiles = new Map<string, string>();
  readonly #shown = new ShownInstructions();
  readonly #refusedMedia = new RefusedMedia();
  /** Whether plugins are yet to hear of a new session: they load with its first turn. */
  #isNew: boolean;
  #isSeen = false;
  /** Models whose window was checked for its size. */
  readonly #warned = new Set<string>();

  constructor(deps: SessionServicesDeps, parts: SessionServices, commanded: CommandContext) {
    this.#deps = deps;
    this.#services = parts;
    this.#commandContext = commanded;
    this.#isNew = deps.transcript.messages.length === 0;
  }

  /** Never rejects: what breaks a turn is how it ended. */
  run(input: PromptInput, signal: AbortSignal): Promise<TurnResult> {
    return this.#turn(input, signal).catch((error: unknown) => this.#toFailure(error));
  }

  async #turn(input: PromptInput, signal: AbortSignal): Promise<TurnResult> {
    const { infoStore, settings, project, commands } = this.#services;
    // As it is now: a mode that is chosen behind the message is not meant for it, but for its limits.
    const { agent, model, effort } = infoStore.info;
    settings.beginTurn();
    await project.refresh();
    const early = this.#parseCommand(input);
    const effect = early?.command.effect;
    if (effect?.kind === "answer")
      return commands.answer(
        input,
        () => effect.run(this.#commandContext, early?.typed ?? "", signal),
        signal,
      );
    const until = (await this.#prepare(signal)) ? signal : AbortSignal.abort();
    const context = this.#toolContext(until);
    const ended = await this.#addMessage(input, context, { agent, model, effort });
    if (ended !== undefined) return ended;
    const result = await this.#runToEnd(context, until);
    await this.#noteSeen();
    return until.aborted ? { end: "cancelled", tokens: result.tokens } : result;
  }

  /** Stores once that the project is worked in. */
  async #noteSeen(): Promise<void> {
    if (this.#isSeen) return;
    this.#isSeen = true;
    try {
      await this.#deps.noteSeen();
    } catch (error) {
      this.#deps.log.warn("project not noted as seen", errorFields(error));
    }
  }

  /** Brings everything that a turn works with to what it is now. Answers whether the turn goes on. */
  async #prepare(signal: AbortSignal): Promise<boolean> {
    const { approvals, servers } = this.#deps;
    const { history, project, plugins } = this.#services;
    await history.settle();
    await approvals.refresh();
    const isGoingOn = await project.settleConsent(signal);
    await plugins.join(project.current);
    this.#notifyPlugins();
    await servers.settle(signal);
    return isGoingOn;
  }

  /** Tells plugins that the session works, and before its first turn that there is a new one. */
  #notifyPlugins(): void {
    const { events, info } = this.#deps;
    if (this.#isNew) events.created(this.#services.infoStore.info);
    this.#isNew = false;
    events.status(info.id, { type: "busy" });
  }

  /** What a task says to its agent is no command. */
  #parseCommand(input: PromptInput): ParsedCommand | undefined {
    return this.#deps.parent !== undefined ? undefined : this.#services.commands.parse(input);
  }

  /** Puts what the person wants into the transcript. A result where that ends the turn already. */
  async #addMessage(
    input: PromptInput,
    context: ToolContext,
    chosen: AgentOverride,
  ): Promise<TurnResult | undefined> {
    const { commands, messages, steering, title } = this.#services;
    const called = this.#parseCommand(input);
    const effect = called?.command.effect;
    if (effect?.kind === "compact") {
      const nothing = await commands.compact(input, called?.typed ?? "", context.signal);
      if (nothing === undefined) steering.open();
      return nothing;
    }
    const said = called === undefined ? { input } : await commands.fill(input, called, context);
    if ("end" in said) return said;
    steering.open();
    const { agent = chosen.agent, model = chosen.model } = said;
    const wish = { agent, model, effort: said.model?.variant ?? chosen.effort };
    await messages.add(said.input, context, wish);
    if (!context.signal.aborted) await title.generate(subjectOf(input), context.signal);
    return undefined;
  }

  /** Runs until no message is left that came meanwhile. After any end but a good one they wait in the transcript. */
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
    const { transcript, diff, writer, events } = this.#deps;
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
    const { runTurn } = await import("../turn/turn.ts");
    const result = await runTurn(
      {
        ...this.#deps,
        project: this.#projectOfTurn(),
        context,
        openCalls,
        maySpend: (abort) => usageTracker.allows(abort),
        plugins: plugins.current,
        givenPrompt: infoStore.info.givenPrompt,
        shown: this.#shown,
        instructions: (abort) => instructions.load(abort),
        takeSteering: () => steering.flushTo(messages, context),
        modelFor: (message) => settings.modelFor(message),
        refusedMedia: this.#refusedMedia,
        warned: this.#warned,
        windows: this.#services.windows,
        warn: this.#services.warn,
        onStep: async (outcome) => {
          diff.note(transcript.messages);
          await usageTracker.countStep(outcome);
        },
        onCompacting: (isRunning) => infoStore.noteCompacting(isRunning),
        onCompacted: (tokens, cost, left) => usageTracker.countCompaction(tokens, cost, left),
      },
      signal,
    );
    const summary = await diff.save();
    if (summary !== undefined) {
      await infoStore.save({ summary });
      events.diff(infoStore.info.id, diff.files);
    }
    await writer.flush();
    return result;
  }

  /** The project with what this session sets otherwise. */
  #projectOfTurn(): Project {
    const project = this.#services.project.current;
    const { autoCompact } = this.#services.infoStore.info;
    if (autoCompact === undefined) return project;
    const { config } = project;
    return { ...project, config: { ...config, compaction: { ...config.compaction, auto: autoCompact } } };
  }

  #toolContext(signal: AbortSignal): ToolContext {
    const { project, settings, steering, tasks, todos } = this.#services;
    return {
      sessionId: this.#deps.info.id,
      agent: settings.agent.name,
      workspace: project.current.workspace,
      seen: this.#seen,
      instructed: this.#shown.paths,
      todos,
      inquire: this.#deps.inquire,
      agents: {
        names: settings.agentNames,
        switchTo: async (name) => {
          await settings.setAgent(name);
          steering.handOver();
        },
      },
      tasks,
      signal,
    };
  }

  #toFailure(error: unknown): TurnResult {
    this.#services.steering.close();
    const code = error instanceof UserError ? "storage" : "internal";
    this.#deps.log.error("a turn broke", { sessionId: this.#deps.info.id, ...errorFields(error) });
    return { end: "failed", error: { code, message: messageOf(error), retryable: false }, tokens: noTokens };
  }
}
