import type { Agent } from "../agent/agent.ts";
import type { Log } from "../base/log.ts";
import type { Emit } from "../message/event.ts";
import type { AgentError, Message, UserInfo } from "../message/message.ts";
import { isFinished } from "../message/part.ts";
import type { Model } from "../model/model.ts";
import type { Gate } from "../permission/gate.ts";
import type { ToolContext } from "../tool/tool.ts";
import type { Project } from "./project.ts";
import { stepLimitReminder } from "./reminders.ts";
import { runStep, type StepOutcome } from "./step.ts";
import { systemPrompt } from "./system-prompt.ts";
import { offeredTools, type ToolSpecs } from "./tool-set.ts";
import { ToolRunner } from "./tool-runner.ts";
import type { Transcript } from "./transcript.ts";
import { addTokens, noTokens, type TurnEnd, type TurnResult } from "./turn-result.ts";

export interface TurnDeps {
  project: Project;
  transcript: Transcript;
  gate: Gate;
  specs: ToolSpecs;
  context: ToolContext;
  emit: Emit;
  log: Log;
  /** Puts messages that arrived meanwhile into the transcript. */
  takeSteering(): Promise<void>;
  /** The model that answers a message; a string says why there is none. */
  modelFor(message: UserInfo): Model | AgentError;
  /** Told after each model call, so that usage is known while the turn goes on. */
  onStep(outcome: StepOutcome, model: Model): Promise<void>;
}

/** Answers the last user message: step after step, decided from the transcript alone. */
export async function runTurn(deps: TurnDeps, signal: AbortSignal): Promise<TurnResult> {
  const { models, retryPolicy } = deps.project;
  const instructions = await deps.project.instructions();
  const known = await deps.project.tools();
  let tokens = noTokens;
  let runner: ToolRunner | undefined;
  for (let steps = 0; ; steps++) {
    if (signal.aborted) return { end: "cancelled", tokens };
    await deps.takeSteering();
    const question = lastUser(deps.transcript.messages);
    if (question === undefined || isAnswered(deps.transcript.messages, question))
      return { end: "finished", tokens };
    const agent = agentOf(deps.project, question);
    const model = deps.modelFor(question);
    if ("code" in model) return { end: "failed", error: model, tokens };

    const isLast = agent.steps !== undefined && steps >= agent.steps - 1;
    const tools = isLast ? [] : offeredTools(known, agent.rules, model, question);
    runner ??= toolRunner(deps, agent);
    runner.offer(tools);
    const system = systemPrompt({
      agent,
      family: model.family,
      environment: environmentOf(deps.project, model),
      skills: [],
      instructions,
      system: question.system,
    });
    const request = {
      system: isLast ? [...system, stepLimitReminder()] : system,
      messages: deps.transcript.messages,
      tools: deps.specs.of(tools),
      ...(model.abilities.temperature && { temperature: agent.temperature, topP: agent.topP }),
      options: agent.options,
    };
    const step = { parentId: question.id, agent: agent.name, model, request };
    const outcome = await runStep({ ...deps, models, retryPolicy, runner }, step, signal);
    tokens = addTokens(tokens, outcome.tokens);
    await deps.onStep(outcome, model);
    const end =
      isLast && outcome.end === "finished" ? { end: "stepLimit" as const } : endAfter(outcome, deps.project);
    if (end !== undefined) return { ...end, tokens };
  }
}

/** What the outcome of a step means for the turn; undefined is "go on". */
function endAfter(outcome: StepOutcome, project: Project): TurnEnd | undefined {
  switch (outcome.end) {
    case "calls":
    case "finished":
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

function lastUser(messages: readonly Message[]): UserInfo | undefined {
  const info = messages.findLast((message) => message.info.role === "user")?.info;
  return info?.role === "user" ? info : undefined;
}

/** Whether the newest assistant message answers the question, finished, with nothing left to do in it. */
export function isAnswered(messages: readonly Message[], question: UserInfo): boolean {
  const last = messages.at(-1);
  if (last?.info.role !== "assistant" || last.info.parentId !== question.id) return false;
  if (last.info.finish === undefined || last.info.finish === "tool-calls" || last.info.finish === "error")
    return false;
  return last.parts.every((part) => part.type !== "tool" || isFinished(part.state));
}

function agentOf(project: Project, question: UserInfo): Agent {
  const agent = project.agents.get(question.agent) ?? project.agents.get(project.defaultAgent);
  if (agent === undefined) throw new Error(`no agent ${question.agent}`);
  return agent;
}

function toolRunner(deps: TurnDeps, agent: Agent): ToolRunner {
  const { config, workspace } = deps.project;
  const limits = {
    maxLines: config.tool_output?.max_lines,
    maxBytes: config.tool_output?.max_bytes,
    folder: workspace.outputFolder,
  };
  return new ToolRunner({ ...deps, rules: agent.rules, limits });
}

function environmentOf(project: Project, model: Model) {
  const { cwd, roots, worktree } = project.workspace;
  return {
    cwd,
    isGit: worktree !== undefined,
    platform: process.platform,
    date: new Date().toDateString(),
    additionalDirectories: roots.slice(1),
    modelName: model.name,
  };
}
