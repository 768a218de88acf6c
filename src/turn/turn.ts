import { type Agent, isCallable } from "../agent/agent.ts";
import { type Log, type LogFields, withFields } from "../base/log.ts";
import type { Instruction } from "../instruction/instructions.ts";
import type { RequestHead } from "../message/estimate-request.ts";
import { newPartId, type SessionId } from "../message/ids.ts";
import type { JsonStore } from "../storage/json/json-store.ts";
import { getUsableWindow } from "../context/context-budget.ts";
import type { AgentError, Message, SentRequest, UserInfo } from "../message/message.ts";
import { isFinished, type SubtaskPart, type Tokens } from "../message/part.ts";
import type { Model, ModelRequest, Models } from "../model/model.ts";
import type { RefusedMedia } from "../model/request/refused-media.ts";
import type { Tool } from "../tool/tool.ts";
import { addReminder } from "../conversation/add-reminder.ts";
import { stepLimitReminder, stopHookReminder } from "../conversation/reminders.ts";
import { type AgentCallsDeps, createToolRunner } from "../tool-calls/agent-calls.ts";
import { compact, type CompactionTarget } from "../context/compaction.ts";
import type { OpenCalls } from "../tool-calls/open-calls.ts";
import type { Project } from "../conversation/project.ts";
import { repetitionError, runStep } from "./step.ts";
import type { StepOutcome } from "../conversation/step-outcome.ts";
import { requestCompaction } from "../context/request-compaction.ts";
import { describeCutInstructions } from "./system-prompt.ts";
import { FrozenPrompts } from "./frozen-prompts.ts";
import {
  buildRequestHead,
  buildStepRequest,
  describePrompt,
  describeSourceChanges,
  type StepQuestion,
  type StepRequestDeps,
  type TurnGiven,
} from "./step-request.ts";
import { TurnEvidence } from "./turn-evidence.ts";
import { findQueuedTasks, runTasks } from "./queued-tasks.ts";
import { taskTool } from "../tool/task/task.ts";
import { AgentOffers, type OfferedTo } from "../tool-calls/tool-set.ts";
import type { ShownInstructions } from "../context/shown-instructions.ts";
import { StepLoopDetector } from "./text-loop.ts";
import type { ToolRunner } from "../tool-calls/tool-runner.ts";
import { type FollowUp, UnfinishedAnswers } from "./unfinished-answers.ts";
import { compactionOf } from "../conversation/visible-messages.ts";
import { findLastRequestAt, hasCacheExpired } from "../context/prompt-cache.ts";
import { createRereadNotice } from "../context/reread-notice.ts";
import { SentRequests } from "../context/sent-requests.ts";
import { WindowGuard, type WindowVerdict } from "../context/window-guard.ts";
import type { ContextWindows } from "../context/windows.ts";
import { addTokens, noTokens, type TurnEnd, type TurnResult } from "../conversation/turn-result.ts";

export interface TurnDeps extends AgentCallsDeps, StepRequestDeps {
  openCalls: OpenCalls;
  /** Whether the turn is a task of another session, which shows its evidence. */
  isTask: boolean;
  /** Whether the user would be asked about costs before the next model call. */
  isLimitReached(): boolean;
  /** Returns whether the next model call may be made; asks the user when a cost limit is reached. */
  maySpend(signal: AbortSignal): Promise<"yes" | "no" | "cancelled">;
  /** Loads the instructions for this turn. */
  instructions(signal: AbortSignal): Promise<readonly Instruction[]>;
  /** Instructions already in the model's context, which are not repeated when it reads files. */
  shown: ShownInstructions;
  /** Returns a description of jobs that ended and that the model does not know; undefined if there are none. */
  takeJobReport(): Promise<string | undefined>;
  /** Returns a description of MCP resources that have changed since the model read them; undefined if there are none. */
  takeResourceReport(): Promise<string | undefined>;
  /** Adds messages that arrived during the turn to the transcript. */
  takeSteering(): Promise<void>;
  /** Returns the model for a message, or the error why none can be used. */
  modelFor(message: UserInfo): Model | AgentError;
  /** Media that models refused in this session, by model. */
  refusedMedia: RefusedMedia;
  /** Compares the session's requests. */
  sent: SentRequests;
  /** Models whose context window was already checked. */
  warned: Set<string>;
  /** Context window sizes learned in this session. */
  windows: ContextWindows;
  /** Shows the user a warning. */
  warn: (text: string) => void;
  /** Shows a notice about an expensive request, once per session. */
  noticeReread(text: string): Promise<void>;
  /** Called after each model call, so that usage stays current during the turn. */
  onStep(outcome: StepOutcome): Promise<void>;
  /** Called before and after a compaction. */
  onCompacting(isRunning: boolean): Promise<void>;
  /** Called after a compaction with its usage and the estimated number of tokens left in the context. */
  onCompacted(tokens: Tokens, cost: number, left: number): Promise<void>;
}

/** Creates the offers of a session, which loads them with its first turn. */
export const createOffers = (): AgentOffers => new AgentOffers();

/** Creates the system prompts of a session, which load with its first turn. */
export const createPrompts = (id: SessionId, files: JsonStore): FrozenPrompts => new FrozenPrompts(id, files);

/** Creates the comparison of a session's requests, which loads with its first turn. */
export const createSentRequests = (costOf: Models["costOf"]): SentRequests => new SentRequests(costOf);

/** Consecutive refused calls that are returned to the model; the next one fails the turn. */
const maxRefusedCalls = 2;

/** How often hooks may continue a turn. */
const maxContinuations = 5;

/** Answers the last user message step by step. The transcript alone decides the next step. */
export async function runTurn(deps: TurnDeps, signal: AbortSignal): Promise<TurnResult> {
  const question = deps.transcript.messages.findLast(({ info }) => info.role === "user");
  const log = withFields(deps.log, { turnId: question?.info.id });
  const startedAt = Date.now();
  log.info("turn started", { agent: question?.info.agent });
  const given = await loadGiven(deps, signal);
  deps.shown.note(deps.transcript.messages, given.instructions);
  const turn = new Turn(deps, log, given);
  const end = await turn.run(signal);
  if (!deps.isTask) await turn.storeEvidence();
  const ms = Date.now() - startedAt;
  if (end.end === "failed") log.warn("turn failed", { ...errorLogFields(end.error), ms });
  else log.info("turn ended", { end: end.end, ms });
  return { ...end, tokens: turn.tokens };
}

/** Omits the provider's message, which may quote the conversation. */
function errorLogFields({ code, status }: AgentError): LogFields {
  return { code, status };
}

/**
 * Loads what every step of the turn gets. MCP servers that connect or change their tools during the turn count from the
 * next turn on, so that the provider's prompt cache stays valid.
 */
async function loadGiven(deps: TurnDeps, signal: AbortSignal): Promise<TurnGiven> {
  const { project } = deps;
  return {
    instructions: await deps.instructions(signal),
    tools: await project.tools(),
    servers: project.serverInstructions?.() ?? [],
  };
}

class Turn {
  readonly #deps: TurnDeps;
  /** Adds the turn to each line. */
  readonly #log: Log;
  readonly #given: TurnGiven;
  #runner: { agent: string; runner: ToolRunner } | undefined;
  #steps = 0;
  readonly #texts = new StepLoopDetector();
  readonly #unfinished = new UnfinishedAnswers();
  readonly #evidence: TurnEvidence;
  /** Consecutive steps with a call that the provider refused. */
  #refusedCalls = 0;
  /** How often hooks continued the turn. */
  #continuations = 0;
  readonly #window: WindowGuard;
  /** Whether old outputs were cleared since the request was built. */
  #hasCleared = false;
  /** Whether the model was reminded that its next step is the last one. */
  #isLimitAnnounced = false;
  /** Whether tools of servers are loaded on demand, by agent and model. */
  readonly #onDemand = new Map<string, boolean>();
  tokens: Tokens = noTokens;

  constructor(deps: TurnDeps, log: Log, given: TurnGiven) {
    this.#deps = deps;
    this.#log = log;
    this.#given = given;
    const { project, transcript } = deps;
    const { cwd, home } = project.workspace;
    this.#evidence = new TurnEvidence({ transcript, jobs: deps.context.jobs, folders: { cwd, home } });
    this.#window = new WindowGuard({ project, transcript, onCleared: () => this.#noteCleared() });
  }

  async run(signal: AbortSignal): Promise<TurnEnd> {
    const { transcript } = this.#deps;
    for (;;) {
      if (signal.aborted) return { end: "cancelled" };
      await this.#deps.takeSteering();
      const message = transcript.messages.findLast(({ info }) => info.role === "user");
      if (message?.info.role !== "user") return { end: "finished" };
      if (isAnswered(transcript.messages, message.info)) {
        if (await this.#remindOfChecks(message.info)) continue;
        if (await this.#isContinuedByHook(message.info, signal)) continue;
        return { end: "finished" };
      }
      const selected = this.#deps.modelFor(message.info);
      if ("code" in selected) return { end: "failed", error: selected };
      const { windows, project } = this.#deps;
      const model = await windows.settle(selected, project.models, signal);
      const budgetEnd = await this.#checkBudget(signal);
      if (budgetEnd !== undefined) return budgetEnd;
      const end = await this.#answer(message, message.info, model, signal);
      if (end !== undefined) return end;
    }
  }

  /** Stores what was changed and run. */
  storeEvidence(): Promise<void> {
    this.#evidence.note();
    return this.#evidence.store();
  }

  /** Adds a reminder if the answer would end a turn whose changes were not checked. Returns whether it did. */
  async #remindOfChecks(question: UserInfo): Promise<boolean> {
    const { transcript, project, isTask } = this.#deps;
    if (isTask || this.#steps === 0) return false;
    const agent = agentOf(project, question);
    const selected = this.#deps.modelFor(question);
    if ("code" in selected) return false;
    // Running the check is one step, the answer after it another one.
    const hasSteps = this.#steps + 2 <= maxSteps(agent, project) && !this.#deps.isLimitReached();
    const { tools } = this.#question(question, selected, false);
    const reminder = await this.#evidence.createReminder({
      agent: agent.name,
      isEnabled: project.config.evidence?.reminder !== false,
      canRunCommands: hasSteps && tools.some(({ name }) => name === "bash"),
    });
    if (reminder === undefined) return false;
    await addReminder(transcript, question, reminder);
    return true;
  }

  /** Adds the objection of a hook to the end of the turn for the model. Returns whether there is one. */
  async #isContinuedByHook(question: UserInfo, signal: AbortSignal): Promise<boolean> {
    const { transcript, project, hooks, isTask, warn } = this.#deps;
    if (hooks === undefined || isTask || this.#steps === 0) return false;
    const lastText = textOf(transcript.messages.at(-1));
    const objection = await hooks.stop(this.#continuations > 0, lastText, signal);
    if (objection === undefined || signal.aborted) return false;
    const isOver =
      this.#steps >= maxSteps(agentOf(project, question), project) || this.#deps.isLimitReached();
    if (isOver || this.#continuations >= maxContinuations) {
      warn(`A hook objects to the end of the turn, which ends at a limit: ${objection}`);
      return false;
    }
    this.#continuations++;
    await addReminder(transcript, question, stopHookReminder(objection));
    return true;
  }

  /** Compacts, runs queued tasks or makes a step. Returns undefined to continue. */
  #answer(message: Message, info: UserInfo, model: Model, signal: AbortSignal): Promise<TurnEnd | undefined> {
    if (compactionOf(message) !== undefined) return this.#compact(message, model, signal);
    const tasks = findQueuedTasks(message, this.#deps.transcript.messages);
    return tasks.length > 0 ? this.#runTasks(tasks, info, model, signal) : this.#step(info, model, signal);
  }

  /** Undefined is "continue". */
  async #checkBudget(signal: AbortSignal): Promise<TurnEnd | undefined> {
    const answer = await this.#deps.maySpend(signal);
    if (answer === "yes") return undefined;
    return { end: answer === "no" ? "stepLimit" : "cancelled" };
  }

  /** Makes one model call and runs its tool calls. Returns undefined to continue. */
  async #step(question: UserInfo, model: Model, signal: AbortSignal): Promise<TurnEnd | undefined> {
    const { project, transcript } = this.#deps;
    if (await this.#remindOfEvents(question)) return undefined;
    const agent = agentOf(project, question);
    const isLast = this.#steps >= maxSteps(agent, project) - 1;
    if (isLast && !this.#isLimitAnnounced) {
      this.#isLimitAnnounced = true;
      await addReminder(transcript, question, stepLimitReminder());
      return undefined;
    }
    const stepQuestion = this.#question(question, model, isLast);
    await this.#remindOfChanges(stepQuestion);
    const returnsRefusedCalls = this.#refusedCalls < maxRefusedCalls;
    const request = { ...(await buildStepRequest(this.#deps, stepQuestion, signal)), returnsRefusedCalls };
    if (this.#isTooLarge(request, model) && (await this.#refitPrompt(stepQuestion, model))) return undefined;
    this.#hasCleared = false;
    const verdict = await this.#window.beforeRequest(request, model);
    if (verdict !== "ask") return this.#applyVerdict(verdict, question);
    if (this.#hasCleared) return undefined;
    await this.#warnOnce(request, model);
    const sent = this.#describeRequest(request, agent.name, model);
    if (this.#steps === 0) await this.#noticeReread(sent, model);
    this.#steps++;
    const runner = this.#runnerFor(agent);
    const results = this.#window.getResultLimits(request, model);
    runner.setTools(isLast ? { tools: [] } : stepQuestion, results);
    const { tokens: estimated } = sent;
    const outcome = await runStep(
      {
        transcript,
        models: project.models,
        runner,
        retryPolicy: project.retryPolicy,
        log: this.#log,
        refusedMedia: this.#deps.refusedMedia,
        warn: this.#deps.warn,
        waitUntilReady: this.#deps.waitUntilReady,
      },
      {
        parentId: question.id,
        agent: agent.name,
        model,
        request: { ...request, promptTokens: this.#window.getPromptTokens(request) },
        sent,
        describeSent: (messages, answered, omitsThoughts) =>
          this.#describeRequest({ ...request, messages }, agent.name, answered, omitsThoughts),
        emptyRetries: this.#unfinished.emptyRetries,
      },
      signal,
    );
    this.#evidence.note();
    this.#window.measure(estimated, outcome);
    this.#refusedCalls = outcome.end === "calls" && outcome.hasRefusedCall ? this.#refusedCalls + 1 : 0;
    this.tokens = addTokens(this.tokens, outcome.tokens);
    await this.#learnWindow(model, estimated, outcome, signal);
    await this.#deps.onStep(outcome);
    if (outcome.end === "calls" && this.#texts.isLoop(textOf(transcript.messages.at(-1))))
      return { end: "failed", error: repetitionError(repeatedStepText) };
    if (isLast && endsAtLimit.has(outcome.end)) return { end: "stepLimit" };
    const todos = this.#deps.context.todos.read();
    const message = transcript.messages.at(-1);
    const followUp = this.#unfinished.followUp({ outcome, message, model, todos });
    if (followUp !== undefined) return this.#applyFollowUp(question, followUp);
    if (outcome.end !== "failed" || outcome.error.code !== "context-length")
      return endAfter(outcome, project);
    const known = this.#deps.windows.applyTo(model);
    if (await this.#refitPrompt(stepQuestion, known)) return undefined;
    return this.#applyVerdict(await this.#window.afterRefusal(request, known, outcome.error), question);
  }

  /** Adds a reminder to a message that the model has not seen, if sources of its system prompt have changed. */
  async #remindOfChanges(question: StepQuestion): Promise<void> {
    const { transcript } = this.#deps;
    const newest = transcript.messages.at(-1);
    if (newest?.info.role !== "user") return;
    const reminder = await describeSourceChanges(this.#deps, question);
    if (reminder === undefined) return;
    transcript.putPart(newest.info.id, { id: newPartId(), type: "text", synthetic: true, ...reminder });
    await transcript.seal(newest.info.id);
  }

  /**
   * Reports jobs that have ended and, at the beginning of the turn, resources that have changed. Returns whether it added
   * a message.
   */
  async #remindOfEvents(question: UserInfo): Promise<boolean> {
    const { transcript } = this.#deps;
    const resources = this.#steps === 0 ? await this.#deps.takeResourceReport() : undefined;
    const reports = [await this.#deps.takeJobReport(), resources].filter((report) => report !== undefined);
    if (reports.length === 0) return false;
    const report = reports.join("\n\n");
    const newest = transcript.messages.at(-1);
    if (newest?.info.role !== "user") {
      await addReminder(transcript, question, report);
      return true;
    }
    transcript.putPart(newest.info.id, { id: newPartId(), type: "text", text: report, synthetic: true });
    await transcript.seal(newest.info.id);
    return false;
  }

  #isTooLarge(request: Pick<ModelRequest, "system" | "tools" | "messages">, model: Model): boolean {
    const usable = getUsableWindow(model, this.#deps.project.config);
    return usable !== undefined && this.#window.estimateSize(request) >= usable;
  }

  /** Builds the system prompt for a context window that was detected later. Returns whether it changed. */
  #refitPrompt(question: StepQuestion, model: Model): Promise<boolean> {
    return this.#deps.prompts.refit(describePrompt(this.#deps, { ...question, model }));
  }

  /** The provider's cache is lost from the first cleared output on, so the next request can also update the system prompt. */
  #noteCleared(): void {
    this.#hasCleared = true;
    this.#deps.shown.forget();
    this.#deps.prompts.forget();
  }

  #describeRequest(
    request: RequestHead & { messages: readonly Message[] },
    agent: string,
    model: Model,
    omitsThoughts?: boolean,
  ): SentRequest {
    const { sent, project, refusedMedia } = this.#deps;
    const hasExpired = hasCacheExpired(request.messages, model, project.config);
    return sent.describe({
      ...request,
      agent,
      model: refusedMedia.applyTo(model),
      hasExpired,
      omitsThoughts,
    });
  }

  /** Shows the price of a request whose beginning the provider has dropped from its cache. */
  async #noticeReread(sent: SentRequest, model: Model): Promise<void> {
    const { transcript, project } = this.#deps;
    if (!hasCacheExpired(transcript.messages, model, project.config)) return;
    const last = findLastRequestAt(transcript.messages, model);
    const idleMs = last === undefined ? undefined : Date.now() - last;
    const notice = createRereadNotice({ sent, model, idleMs }, project.config, project.models);
    if (notice !== undefined) await this.#deps.noticeReread(notice);
  }

  async #learnWindow(
    model: Model,
    estimated: number,
    outcome: StepOutcome,
    signal: AbortSignal,
  ): Promise<void> {
    const { windows, project } = this.#deps;
    const notice = await windows.learn(model, { estimated, outcome }, project.models, signal);
    if (notice !== undefined) this.#deps.warn(notice);
  }

  /** Undefined is "continue". */
  async #applyFollowUp(question: UserInfo, followUp: FollowUp): Promise<TurnEnd | undefined> {
    if ("remind" in followUp) {
      await addReminder(this.#deps.transcript, question, followUp.remind);
      return undefined;
    }
    if (followUp.notice !== undefined) this.#deps.warn(followUp.notice);
    return followUp.end;
  }

  /** Returns the sources of a step's request. */
  #question(question: UserInfo, model: Model, isLast: boolean) {
    const agent = agentOf(this.#deps.project, question);
    const { offers, project } = this.#deps;
    const offeredTo = { agents: project.agents, agent };
    const all = this.#toolsFor(agent);
    const offered = offers.tools(all, offeredTo, model, question);
    const unoffered = offers.unofferedTools(all, offeredTo, model, question);
    const split = offers.split(offered, this.#isOnDemand(offered, offeredTo, model));
    return { ...this.#given, question, agent, model, ...split, unoffered, isLast };
  }

  /** Whether tools of servers are loaded on demand. Decided once per turn and model: a window may become known. */
  #isOnDemand(tools: readonly Tool[], offeredTo: OfferedTo, model: Model): boolean {
    const { offers, project, transcript } = this.#deps;
    const key = JSON.stringify([offeredTo.agent.name, model.ref]);
    const decided = this.#onDemand.get(key);
    if (decided !== undefined) return decided;
    const { messages } = transcript;
    const input = { tools, model, mode: project.config.mcp_tools, messages };
    const isOnDemand = offers.decideOnDemand(offeredTo, input);
    this.#onDemand.set(key, isOnDemand);
    return isOnDemand;
  }

  /** Undefined is "continue", perhaps with a compaction. */
  async #applyVerdict(verdict: WindowVerdict, question: UserInfo): Promise<TurnEnd | undefined> {
    if (verdict === "ask") return undefined;
    if (verdict !== "compact") return { end: "failed", error: verdict };
    await requestCompaction(this.#deps.transcript, question, { auto: true });
    return undefined;
  }

  async #warnOnce(head: RequestHead, model: Model): Promise<void> {
    const { warned } = this.#deps;
    const name = JSON.stringify(model.ref);
    if (warned.has(name)) return;
    warned.add(name);
    const warnings = [
      this.#window.createWarning(head, model),
      describeCutInstructions(this.#given.instructions, model),
    ];
    for (const warning of warnings) if (warning !== undefined) this.#deps.warn(warning);
  }

  /** Runs the tasks queued by a command as if the model had called them; the model answers afterwards. */
  async #runTasks(
    tasks: readonly SubtaskPart[],
    question: UserInfo,
    model: Model,
    signal: AbortSignal,
  ): Promise<TurnEnd | undefined> {
    const { project, transcript } = this.#deps;
    const agent = agentOf(project, question);
    const runner = this.#runnerFor(agent);
    const stepQuestion = this.#question(question, model, false);
    const head = await buildRequestHead(this.#deps, stepQuestion, signal);
    const results = this.#window.getResultLimits({ ...head, messages: transcript.messages }, model);
    const agents = [...project.agents.values()].filter(isCallable);
    runner.setTools({ tools: [taskTool({ agents })] }, results);
    const stops = await runTasks(
      { transcript, runner },
      tasks,
      { question, agent: agent.name, model: model.ref },
      signal,
    );
    this.#evidence.note();
    if (signal.aborted || stops.includes("cancelled")) return { end: "cancelled" };
    return stops.includes("rejected") ? { end: "finished" } : undefined;
  }

  /** Returns the turn's tools and, if the agent may delegate, the task tool. */
  #toolsFor(agent: Agent): readonly Tool[] {
    const { project, offers } = this.#deps;
    return [...this.#given.tools, ...offers.taskTools({ agents: project.agents, agent })];
  }

  /** Returns the tool runner, reused while the agent stays the same. */
  #runnerFor(agent: Agent): ToolRunner {
    if (this.#runner?.agent === agent.name) return this.#runner.runner;
    const { transcript, project, gate, openCalls, context, emit, waitUntilReady, plugins, hooks } =
      this.#deps;
    const calls = {
      project,
      gate,
      openCalls,
      context,
      emit,
      waitUntilReady,
      log: this.#log,
      plugins,
      hooks,
    };
    const runner = createToolRunner(calls, agent, transcript);
    this.#runner = { agent: agent.name, runner };
    return runner;
  }

  async #writeSummary(message: Message, target: CompactionTarget, signal: AbortSignal) {
    const { project, transcript, context, emit, waitUntilReady } = this.#deps;
    const parts = { project, transcript, todos: context.todos, jobs: context.jobs, emit, waitUntilReady };
    await this.#deps.onCompacting(true);
    try {
      return await compact(parts, message, target, signal);
    } finally {
      await this.#deps.onCompacting(false);
    }
  }

  /** Compacts the conversation as the message requests. The turn continues after an automatic compaction. */
  async #compact(message: Message, model: Model, signal: AbortSignal): Promise<TurnEnd | undefined> {
    if (message.info.role !== "user") throw new Error("not a compaction");
    const stepQuestion = this.#question(message.info, model, true);
    const { messages, ...request } = await buildStepRequest(this.#deps, stepQuestion, signal);
    const size = this.#window.estimateSize({ ...request, messages });
    const others = messages.filter((other) => other !== message);
    const sent = this.#describeRequest({ ...request, messages: others }, stepQuestion.agent.name, model);
    await this.#noticeReread(sent, model);
    const target = { model: this.#deps.refusedMedia.applyTo(model), request, size, sent };
    const outcome = await this.#writeSummary(message, target, signal);
    if (outcome.outcome === "cancelled") return { end: "cancelled" };
    if (outcome.outcome === "failed") return { end: "failed", error: outcome.error };
    this.tokens = addTokens(this.tokens, outcome.tokens);
    await this.#deps.onCompacted(outcome.tokens, outcome.cost, outcome.left);
    this.#deps.offers.reconsiderOnDemand();
    this.#onDemand.clear();
    this.#deps.shown.forget();
    this.#deps.prompts.forget();
    this.#deps.shown.note(this.#deps.transcript.messages, this.#given.instructions);
    return compactionOf(message)?.auto ? undefined : { end: "finished" };
  }
}

/** Ends of a step that would continue the turn or finish it if the step limit were not reached. */
const endsAtLimit: ReadonlySet<StepOutcome["end"]> = new Set(["finished", "calls", "empty", "leaked"]);

/** Returns how the step ends the turn; undefined to continue. */
function endAfter(outcome: StepOutcome, project: Project): TurnEnd | undefined {
  switch (outcome.end) {
    case "calls":
    case "finished":
    case "empty":
    case "leaked":
      return undefined;
    case "rejected":
      return project.config.experimental?.continue_loop_on_deny ? undefined : { end: "finished" };
    case "failed":
      return { end: "failed", error: outcome.error };
    case "outputLimit":
    case "refused":
    case "cancelled":
      return { end: outcome.end };
  }
}

const repeatedStepText =
  "The model repeats itself: it wrote the same text in each of the last steps, so the turn was stopped. Rephrase the request, or choose another model.";

function textOf(message: Message | undefined): string {
  return (message?.parts ?? []).map((part) => (part.type === "text" ? part.text : "")).join("");
}

/** Whether the newest assistant message is a finished answer to the question without open tool calls. */
function isAnswered(messages: readonly Message[], question: UserInfo): boolean {
  const last = messages.at(-1);
  if (last?.info.role !== "assistant" || last.info.parentId !== question.id) return false;
  if (last.info.finish === undefined || last.info.finish === "tool-calls" || last.info.finish === "error") {
    return false;
  }
  return last.parts.every((part) => part.type !== "tool" || isFinished(part.state));
}

function agentOf(project: Project, question: UserInfo): Agent {
  const agent = project.agents.get(question.agent) ?? project.agents.get(project.defaultAgent);
  if (agent === undefined) throw new Error(`no agent ${question.agent}`);
  return agent;
}

/** Maximum number of model calls in a turn of the agent. */
function maxSteps({ steps = Number.POSITIVE_INFINITY }: Agent, { config }: Project): number {
  return Math.min(steps, config.max_steps ?? Number.POSITIVE_INFINITY);
}
