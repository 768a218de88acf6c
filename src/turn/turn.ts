import { type Agent, isCallable } from "../agent/agent.ts";
import { memoizePer } from "../base/memoize.ts";
import { type LogFields, withFields } from "../base/log.ts";
import type { Instruction } from "../instruction/instructions.ts";
import { estimateRequest, type RequestHead } from "../message/estimate-request.ts";
import type { AgentError, Message, UserInfo } from "../message/message.ts";
import { isFinished, type SubtaskPart, type Tokens } from "../message/part.ts";
import type { Model } from "../model/model.ts";
import type { RefusedMedia } from "../model/request/refused-media.ts";
import type { Tool } from "../tool/tool.ts";
import { addReminder } from "../conversation/add-reminder.ts";
import { type AgentCallsDeps, createCallDeps } from "../tool-calls/agent-calls.ts";
import { compact, type CompactionTarget } from "../context/compaction.ts";
import type { OpenCalls } from "../tool-calls/open-calls.ts";
import type { Project } from "../conversation/project.ts";
import { prune, pruneLimits } from "../context/prune.ts";
import { repetitionError, runStep } from "./step.ts";
import type { StepOutcome } from "../conversation/step-outcome.ts";
import { requestCompaction } from "../context/request-compaction.ts";
import { buildRequestHead, buildStepRequest, type StepRequestDeps } from "./step-request.ts";
import { findQueuedTasks, runTasks } from "./queued-tasks.ts";
import { taskTool } from "../tool/task.ts";
import { selectAgents, selectTools } from "../tool-calls/tool-set.ts";
import type { ShownInstructions } from "../context/shown-instructions.ts";
import { StepLoopDetector } from "./text-loop.ts";
import { ToolRunner } from "../tool-calls/tool-runner.ts";
import { type FollowUp, UnfinishedAnswers } from "./unfinished-answers.ts";
import { compactionOf } from "../conversation/visible-messages.ts";
import { WindowGuard, type WindowVerdict } from "../context/window-guard.ts";
import type { Windows } from "../context/windows.ts";
import { addTokens, noTokens, type TurnEnd, type TurnResult } from "../conversation/turn-result.ts";

export interface TurnDeps extends AgentCallsDeps, StepRequestDeps {
  openCalls: OpenCalls;
  /** Whether the next model call may be made; asks the person where a limit of cost is reached. */
  maySpend(signal: AbortSignal): Promise<"yes" | "no" | "cancelled">;
  /** What people want of agents here. */
  instructions(signal: AbortSignal): Promise<readonly Instruction[]>;
  /** What of instructions the model has before it: when it reads files it is not given that again. */
  shown: ShownInstructions;
  /** Puts messages that arrived meanwhile into the transcript. */
  takeSteering(): Promise<void>;
  /** The model that answers a message, or why there is none. */
  modelFor(message: UserInfo): Model | AgentError;
  /** What models refused in this session, though they may take others. */
  refusedMedia: RefusedMedia;
  /** Models whose window was checked for its size. */
  warned: Set<string>;
  /** What this session found out of the windows of models. */
  windows: Windows;
  /** Tells the person. */
  warn(text: string): Promise<void>;
  /** Told after each model call, so that usage is known while the turn goes on. */
  onStep(outcome: StepOutcome): Promise<void>;
  /** Called before and after a compaction. */
  onCompacting(isRunning: boolean): Promise<void>;
  /** Told after a compaction, with what it used and the tokens that are left, estimated. */
  onCompacted(tokens: Tokens, cost: number, left: number): Promise<void>;
}

/** Refused calls in a row that go back to the model; the next one fails the turn. */
const maxRefusedCalls = 2;

/** Answers the last user message: step after step, decided from the transcript alone. */
export async function runTurn(given: TurnDeps, signal: AbortSignal): Promise<TurnResult> {
  const question = given.transcript.messages.findLast(({ info }) => info.role === "user");
  const deps = { ...given, log: withFields(given.log, { turnId: question?.info.id }) };
  const began = Date.now();
  deps.log.info("a turn began", { agent: question?.info.agent });
  const instructions = await deps.instructions(signal);
  deps.shown.note(deps.transcript.messages, instructions);
  const turn = new Turn(deps, instructions);
  const end = await turn.run(signal);
  const { compaction } = deps.project.config;
  if (compaction?.prune !== false && (await prune(deps.transcript, pruneLimits))) deps.shown.forget();
  const ms = Date.now() - began;
  if (end.end === "failed") deps.log.warn("a turn failed", { ...errorLogFields(end.error), ms });
  else deps.log.info("a turn ended", { end: end.end, ms });
  return { ...end, tokens: turn.tokens };
}

/** A provider's words may quote the conversation: they are for the person, not for the log. */
function errorLogFields({ code, status }: AgentError): LogFields {
  return { code, status };
}

const cachedTaskTools = memoizePer<readonly Tool[]>();

class Turn {
  readonly #deps: TurnDeps;
  readonly #instructions: readonly Instruction[];
  #runner: { agent: string; runner: ToolRunner } | undefined;
  #steps = 0;
  readonly #texts = new StepLoopDetector();
  readonly #unfinished = new UnfinishedAnswers();
  /** Steps in a row whose call the provider refused. */
  #refusedCalls = 0;
  readonly #window: WindowGuard;
  tokens: Tokens = noTokens;

  constructor(deps: TurnDeps, instructions: readonly Instruction[]) {
    this.#deps = deps;
    this.#instructions = instructions;
    this.#window = new WindowGuard(deps);
  }

  async run(signal: AbortSignal): Promise<TurnEnd> {
    const { transcript } = this.#deps;
    for (;;) {
      if (signal.aborted) return { end: "cancelled" };
      await this.#deps.takeSteering();
      const message = transcript.messages.findLast(({ info }) => info.role === "user");
      if (message?.info.role !== "user" || isAnswered(transcript.messages, message.info))
        return { end: "finished" };
      const chosen = this.#deps.modelFor(message.info);
      if ("code" in chosen) return { end: "failed", error: chosen };
      const { windows, project } = this.#deps;
      const model = await windows.settle(chosen, project.models, signal);
      const spending = await this.#checkBudget(signal);
      if (spending !== undefined) return spending;
      const end = await this.#answer(message, message.info, model, signal);
      if (end !== undefined) return end;
    }
  }

  /** Does the next thing that the message needs. Undefined is "go on". */
  #answer(message: Message, info: UserInfo, model: Model, signal: AbortSignal): Promise<TurnEnd | undefined> {
    if (compactionOf(message) !== undefined) return this.#compact(message, model, signal);
    const tasks = findQueuedTasks(message, this.#deps.transcript.messages);
    return tasks.length > 0 ? this.#runTasks(tasks, info, model, signal) : this.#step(info, model, signal);
  }

  /** Undefined is "go on". */
  async #checkBudget(signal: AbortSignal): Promise<TurnEnd | undefined> {
    const answer = await this.#deps.maySpend(signal);
    if (answer === "yes") return undefined;
    return { end: answer === "no" ? "stepLimit" : "cancelled" };
  }

  /** One model call with its tool calls. Undefined is "go on". */
  async #step(question: UserInfo, model: Model, signal: AbortSignal): Promise<TurnEnd | undefined> {
    const { project, transcript } = this.#deps;
    const agent = agentOf(project, question);
    const isLast = this.#steps >= maxSteps(agent, project) - 1;
    const asked = await this.#question(question, model, isLast);
    const returnsRefusedCalls = this.#refusedCalls < maxRefusedCalls;
    const request = { ...(await buildStepRequest(this.#deps, asked, signal)), returnsRefusedCalls };
    const verdict = await this.#window.beforeRequest(request, model);
    if (verdict !== "ask") return this.#applyVerdict(verdict, question);
    await this.#warnOnce(request, model);
    this.#steps++;
    const runner = this.#runnerFor(agent);
    runner.setTools(asked.tools, this.#window.resultLimits(request, model));
    const estimated = estimateRequest(request);
    const outcome = await runStep(
      { ...this.#deps, models: project.models, retryPolicy: project.retryPolicy, runner },
      {
        parentId: question.id,
        agent: agent.name,
        model,
        request: { ...request, promptTokens: this.#window.promptTokens(request) },
        emptyRetries: this.#unfinished.emptyRetries,
      },
      signal,
    );
    this.#window.measure(estimated, outcome);
    this.#refusedCalls = outcome.end === "calls" && outcome.hasRefusedCall ? this.#refusedCalls + 1 : 0;
    this.tokens = addTokens(this.tokens, outcome.tokens);
    await this.#learnWindow(model, estimated, outcome, signal);
    await this.#deps.onStep(outcome);
    if (outcome.end === "calls" && this.#texts.isLoop(textOf(transcript.messages.at(-1))))
      return { end: "failed", error: repetitionError(sameInEachStep) };
    if (isLast && endsAtLimit.has(outcome.end)) return { end: "stepLimit" };
    const todos = this.#deps.context.todos.read();
    const message = transcript.messages.at(-1);
    const followUp = this.#unfinished.followUp({ outcome, message, model, todos });
    if (followUp !== undefined) return this.#applyFollowUp(question, followUp);
    if (outcome.end !== "failed" || outcome.error.code !== "context-length")
      return endAfter(outcome, project);
    const known = this.#deps.windows.applyTo(model);
    return this.#applyVerdict(await this.#window.afterRefusal(request, known, outcome.error), question);
  }

  async #learnWindow(
    model: Model,
    estimated: number,
    outcome: StepOutcome,
    signal: AbortSignal,
  ): Promise<void> {
    const { windows, project } = this.#deps;
    const notice = await windows.learn(model, { estimated, outcome }, project.models, signal);
    if (notice !== undefined) await this.#deps.warn(notice);
  }

  /** Undefined is "go on". */
  async #applyFollowUp(question: UserInfo, followUp: FollowUp): Promise<TurnEnd | undefined> {
    if ("remind" in followUp) {
      await addReminder(this.#deps.transcript, question, followUp.remind);
      return undefined;
    }
    if (followUp.notice !== undefined) await this.#deps.warn(followUp.notice);
    return followUp.end;
  }

  /** Who is asked, with which tools and instructions. */
  async #question(question: UserInfo, model: Model, isLast: boolean) {
    const agent = agentOf(this.#deps.project, question);
    const tools = isLast ? [] : selectTools(await this.#toolsFor(agent), agent, model, question);
    return { question, agent, model, tools, isLast, instructions: this.#instructions };
  }

  /** Undefined is "go on", perhaps with a compaction. */
  async #applyVerdict(verdict: WindowVerdict, question: UserInfo): Promise<TurnEnd | undefined> {
    if (verdict === "ask") return undefined;
    if (verdict !== "compact") return { end: "failed", error: verdict };
    await requestCompaction(this.#deps.transcript, question, { auto: true });
    return undefined;
  }

  async #warnOnce(head: RequestHead, model: Model): Promise<void> {
    const { warned } = this.#deps;
    const name = JSON.stringify(model.ref);
    const warning = warned.has(name) ? undefined : this.#window.warningOf(head, model);
    warned.add(name);
    if (warning !== undefined) await this.#deps.warn(warning);
  }

  /** Runs what a command queued, as if the model had called for it; the model's word follows. */
  async #runTasks(
    tasks: readonly SubtaskPart[],
    question: UserInfo,
    model: Model,
    signal: AbortSignal,
  ): Promise<TurnEnd | undefined> {
    const { project, transcript } = this.#deps;
    const agent = agentOf(project, question);
    const runner = this.#runnerFor(agent);
    const asked = await this.#question(question, model, false);
    const head = await buildRequestHead(this.#deps, asked, signal);
    const results = this.#window.resultLimits({ ...head, messages: transcript.messages }, model);
    const agents = [...project.agents.values()].filter(isCallable);
    runner.setTools([taskTool({ agents })], results);
    const stops = await runTasks(
      { transcript, runner },
      tasks,
      { question, agent: agent.name, model: model.ref },
      signal,
    );
    if (signal.aborted || stops.includes("cancelled")) return { end: "cancelled" };
    return stops.includes("rejected") ? { end: "finished" } : undefined;
  }

  /**
   * With the agents that this one may hand tasks to, where there are any. Asked for each step: servers come, go and
   * change what they offer while a turn runs.
   */
  async #toolsFor(agent: Agent): Promise<readonly Tool[]> {
    const { project } = this.#deps;
    const tasks = cachedTaskTools(agent, [project.agents], () => {
      const agents = selectAgents(project.agents.values(), agent);
      return agents.length === 0 ? [] : [taskTool({ agents })];
    });
    return [...(await project.tools()), ...tasks];
  }

  /** One for as long as the agent stays the same. */
  #runnerFor(agent: Agent): ToolRunner {
    if (this.#runner?.agent === agent.name) return this.#runner.runner;
    const { transcript } = this.#deps;
    const runner = new ToolRunner({ ...createCallDeps(this.#deps, agent), transcript });
    this.#runner = { agent: agent.name, runner };
    return runner;
  }

  async #writeSummary(message: Message, target: CompactionTarget, signal: AbortSignal) {
    const { todos } = this.#deps.context;
    await this.#deps.onCompacting(true);
    try {
      return await compact({ ...this.#deps, todos }, message, target, signal);
    } finally {
      await this.#deps.onCompacting(false);
    }
  }

  /** Makes room, as the message asks. An automatic compaction is followed by the rest of the work. */
  async #compact(message: Message, model: Model, signal: AbortSignal): Promise<TurnEnd | undefined> {
    if (message.info.role !== "user") throw new Error("not a compaction");
    const asked = await this.#question(message.info, model, false);
    const head = await buildRequestHead(this.#deps, asked, signal);
    const outcome = await this.#writeSummary(message, { model, head }, signal);
    if (outcome.outcome === "cancelled") return { end: "cancelled" };
    if (outcome.outcome === "failed") return { end: "failed", error: outcome.error };
    this.tokens = addTokens(this.tokens, outcome.tokens);
    await this.#deps.onCompacted(outcome.tokens, outcome.cost, outcome.left);
    this.#deps.shown.forget();
    this.#deps.shown.note(this.#deps.transcript.messages, this.#instructions);
    return compactionOf(message)?.auto ? undefined : { end: "finished" };
  }
}

/** Ends of a step after which only the limit of steps keeps the turn from going on, or from ending well. */
const endsAtLimit: ReadonlySet<StepOutcome["end"]> = new Set(["finished", "calls", "empty", "leaked"]);

/** What the outcome of a step means for the turn; undefined is "go on". */
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

const sameInEachStep =
  "The model repeats itself: it said the same in each of the last steps, so the turn was stopped. Ask again in other words, or choose another model.";

function textOf(message: Message | undefined): string {
  return (message?.parts ?? []).map((part) => (part.type === "text" ? part.text : "")).join("");
}

/** Whether the newest assistant message answers the question, finished, with nothing left to do in it. */
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

/** Model calls that a turn under the agent may take. */
function maxSteps({ steps = Number.POSITIVE_INFINITY }: Agent, { config }: Project): number {
  return Math.min(steps, config.max_steps ?? Number.POSITIVE_INFINITY);
}
