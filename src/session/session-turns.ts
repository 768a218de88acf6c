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
  readonly #parts: SessionServices;
  /** What commands work with. */
  readonly #commanded: CommandContext;
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
    this.#parts = parts;
    this.#commanded = commanded;
    this.#isNew = deps.transcript.messages.length === 0;
  }

  /** Never rejects: what breaks a turn is how it ended. */
  run(input: PromptInput, signal: AbortSignal): Promise<TurnResult> {
    return this.#turn(input, signal).catch((error: unknown) => this.#broken(error));
  }

  async #turn(input: PromptInput, signal: AbortSignal): Promise<TurnResult> {
    const { infoStore: record, settings: choices, project, commands } = this.#parts;
    // As it is now: a mode that is chosen behind the message is not meant for it, but for its limits.
    const { agent, model, effort } = record.info;
    choices.beginTurn();
    await project.refresh();
    const early = this.#called(input);
    const effect = early?.command.effect;
    if (effect?.kind === "answer")
      return commands.answer(input, () => effect.run(this.#commanded, early?.typed ?? "", signal), signal);
    const until = (await this.#settle(signal)) ? signal : AbortSignal.abort();
    const context = this.#toolContext(until);
    const ended = await this.#ask(input, context, { agent, model, effort });
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
  async #settle(signal: AbortSignal): Promise<boolean> {
    const { approvals, servers } = this.#deps;
    const { history, project, plugins } = this.#parts;
    await history.settle();
    await approvals.refresh();
    const isGoingOn = await project.settleConsent(signal);
    await plugins.join(project.current);
    this.#announce();
    await servers.settle(signal);
    return isGoingOn;
  }

  /** Tells plugins that the session works, and before its first turn that there is a new one. */
  #announce(): void {
    const { events, info } = this.#deps;
    if (this.#isNew) events.created(this.#parts.infoStore.info);
    this.#isNew = false;
    events.status(info.id, { type: "busy" });
  }

  /** What a task says to its agent is no command. */
  #called(input: PromptInput): ParsedCommand | undefined {
    return this.#deps.parent !== undefined ? undefined : this.#parts.commands.calledBy(input);
  }

  /** Puts what the person wants into the transcript. A result where that ends the turn already. */
  async #ask(
    input: PromptInput,
    context: ToolContext,
    chosen: AgentOverride,
  ): Promise<TurnResult | undefined> {
    const { commands, messages, steering, title } = this.#parts;
    const called = this.#called(input);
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
    if (!context.signal.aborted) await title.give(subjectOf(input), context.signal);
    return undefined;
  }

  /** Runs until no message is left that came meanwhile. After any end but a good one they wait in the transcript. */
  async #runToEnd(context: ToolContext, signal: AbortSignal): Promise<TurnResult> {
    const { messages, usage: spending, steering } = this.#parts;
    let result: TurnResult = { end: "cancelled", tokens: noTokens };
    spending.beginTurn();
    while (!signal.aborted) {
      const next = await this.#runTurn(context, signal);
      result = { ...next, tokens: addTokens(result.tokens, next.tokens) };
      if (result.end !== "finished" || steering.isEmpty) break;
    }
    steering.close();
    await steering.takeInto(messages, context);
    return { ...result, tokens: addTokens(result.tokens, spending.childTokens) };
  }

  async #runTurn(context: ToolContext, signal: AbortSignal): Promise<TurnResult> {
    const { transcript, diff, writer, events } = this.#deps;
    const {
      infoStore: record,
      settings: choices,
      plugins,
      instructions,
      messages,
      usage: spending,
      steering,
      openCalls,
    } = this.#parts;
    const { runTurn } = await import("../turn/turn.ts");
    const result = await runTurn(
      {
        ...this.#deps,
        project: this.#projectOfTurn(),
        context,
        openCalls,
        maySpend: (abort) => spending.allows(abort),
        plugins: plugins.current,
        givenPrompt: record.info.givenPrompt,
        shown: this.#shown,
        instructions: (abort) => instructions.load(abort),
        takeSteering: () => steering.takeInto(messages, context),
        modelFor: (message) => choices.modelFor(message),
        refusedMedia: this.#refusedMedia,
        warned: this.#warned,
        windows: this.#parts.windows,
        warn: this.#parts.warn,
        onStep: async (outcome) => {
          diff.note(transcript.messages);
          await spending.countStep(outcome);
        },
        onCompacting: (isRunning) => record.noteCompacting(isRunning),
        onCompacted: (tokens, cost, left) => spending.countCompaction(tokens, cost, left),
      },
      signal,
    );
    const summary = await diff.save();
    if (summary !== undefined) {
      await record.save({ summary });
      events.diff(record.info.id, diff.files);
    }
    await writer.flush();
    return result;
  }

  /** The project with what this session sets otherwise. */
  #projectOfTurn(): Project {
    const project = this.#parts.project.current;
    const { autoCompact } = this.#parts.infoStore.info;
    if (autoCompact === undefined) return project;
    const { config } = project;
    return { ...project, config: { ...config, compaction: { ...config.compaction, auto: autoCompact } } };
  }

  #toolContext(signal: AbortSignal): ToolContext {
    const { project, settings: choices, steering, tasks, todos } = this.#parts;
    return {
      sessionId: this.#deps.info.id,
      agent: choices.agent.name,
      workspace: project.current.workspace,
      seen: this.#seen,
      instructed: this.#shown.paths,
      todos,
      inquire: this.#deps.inquire,
      agents: {
        names: choices.agentNames,
        switchTo: async (name) => {
          await choices.setAgent(name);
          steering.handOver();
        },
      },
      tasks,
      signal,
    };
  }

  #broken(error: unknown): TurnResult {
    this.#parts.steering.close();
    const code = error instanceof UserError ? "storage" : "internal";
    this.#deps.log.error("a turn broke", { sessionId: this.#deps.info.id, ...errorFields(error) });
    return { end: "failed", error: { code, message: messageOf(error), retryable: false }, tokens: noTokens };
  }
}
