import type { Agent } from "../agent/agent.ts";
import { sha256 } from "../base/text/hash.ts";
import type { Instruction } from "../instruction/instructions.ts";
import type { GivenPrompt, UserInfo } from "../message/message.ts";
import { toTraceHeaders } from "../message/trace-context.ts";
import type { Model, ModelRequest } from "../model/model.ts";
import { toPluginMessage, toPluginModel } from "../plugin/plugin-type-mapping.ts";
import type { Tool } from "../tool/tool.ts";
import type { AgentCallsDeps } from "../tool-calls/agent-calls.ts";
import type { Project } from "../conversation/project.ts";
import { formatDate } from "../conversation/reminders.ts";
import type { StepInput } from "./step.ts";
import { listByServer } from "../tool-calls/on-demand/list-tools.ts";
import { findLastRequestAt, hasCacheExpired } from "../context/prompt-cache.ts";
import { type FrozenPrompts, joinBlocks, type PromptNeed } from "./frozen-prompts.ts";
import { type ChangeReminder, describeChanges, digestSources } from "./prompt-sources.ts";
import { buildSystemBlocks, getWindow, type SystemPromptInput } from "./system-prompt.ts";
import { isBuiltIn } from "../tool-calls/tool-schema.ts";
import type { AgentOffers } from "../tool-calls/tool-set.ts";
import type { Transcript } from "../conversation/transcript.ts";

export interface StepRequestDeps extends Pick<AgentCallsDeps, "project" | "context" | "plugins"> {
  transcript: Transcript;
  /** The tools, agents and skills that the session's agents offer to models. */
  offers: AgentOffers;
  /** When the session began. The system prompt keeps its date, so that caches stay valid past midnight. */
  startedAt: number;
  /** The client's instructions for the session. */
  givenPrompt?: GivenPrompt | undefined;
  /** The session's system prompts. */
  prompts: FrozenPrompts;
}

/** The parts of a request that stay the same in every step of a turn. */
export interface TurnGiven {
  readonly instructions: readonly Instruction[];
  /** The tools of the project and of MCP servers. */
  readonly tools: readonly Tool[];
  /** Usage instructions of MCP servers, sorted by name. */
  readonly servers: readonly { name: string; text: string }[];
}

/** A question with the agent, the model and everything else that answers it. */
export interface StepQuestion extends TurnGiven {
  question: UserInfo;
  agent: Agent;
  model: Model;
  /** The tools that are sent to the model. */
  tools: readonly Tool[];
  /** The tools that are only named to the model. */
  onDemand: readonly Tool[];
  /** Whether no further step follows, so that the model must not call tools. */
  isLast: boolean;
}

/** Builds the request of one step; plugins may change its parameters. */
export async function buildStepRequest(
  deps: StepRequestDeps,
  question: StepQuestion,
  signal: AbortSignal,
): Promise<StepInput["request"]> {
  const { trace } = deps.context;
  const request = {
    ...(await buildRequestHead(deps, question, signal)),
    otherToolNames: deps.offers.otherNames(question.tools),
    unsentTools: deps.offers.specs(question.onDemand),
    messages: deps.transcript.messages,
  };
  return {
    ...request,
    ...(question.isLast && { toolChoice: "none" }),
    ...(trace && { headers: toTraceHeaders(trace) }),
    ...(await getParams(deps, question, signal)),
  };
}

/** Builds the system prompt and tools, which precede the conversation. */
export async function buildRequestHead(
  deps: StepRequestDeps,
  question: StepQuestion,
  signal: AbortSignal,
): Promise<Pick<ModelRequest, "system" | "tools">> {
  return { system: await transformSystem(deps, question, signal), tools: deps.offers.specs(question.tools) };
}

/** Returns the system prompt after plugins changed it. */
async function transformSystem(
  deps: StepRequestDeps,
  question: StepQuestion,
  signal: AbortSignal,
): Promise<string[]> {
  const { plugins, context, prompts } = deps;
  const blocks = joinBlocks((await prompts.get(describePrompt(deps, question))).blocks);
  const added = question.question.system?.trim();
  const system = added ? [...blocks, added] : blocks;
  if (!plugins?.has("experimental.chat.system.transform")) return system;
  const input = { sessionID: context.sessionId, model: toPluginModel(question.model.ref) };
  return plugins.system(input, system, signal);
}

export interface PromptDeps extends Pick<
  StepRequestDeps,
  "project" | "offers" | "startedAt" | "givenPrompt"
> {
  readonly transcript: Pick<Transcript, "messages">;
}

/** The parts of a question that decide its system prompt. */
export type PromptQuestion = Pick<StepQuestion, "agent" | "model" | keyof TurnGiven | "onDemand">;

/** Describes the system prompt of a question, which is built only if none is frozen. */
export function describePrompt(deps: PromptDeps, question: PromptQuestion): PromptNeed {
  const { offers, project, transcript, givenPrompt } = deps;
  const { agent, model } = question;
  const { provider, model: name } = model.ref;
  const callers = offers.callerNames({ agents: project.agents, agent });
  const { messages } = transcript;
  return {
    key: sha256(JSON.stringify([provider, name, callers, agent.prompt, givenPrompt])),
    tools: offers.digest(question.tools),
    window: getWindow(model.limit),
    isCached:
      findLastRequestAt(messages, model) !== undefined && !hasCacheExpired(messages, model, project.config),
    build: () => {
      const input = collectPromptInput(deps, question);
      return { blocks: buildSystemBlocks(input), sources: digestSources(input) };
    },
  };
}

/** Describes how the current sources differ from what the model has seen; undefined if they are the same. */
export async function describeSourceChanges(
  deps: StepRequestDeps,
  question: StepQuestion,
): Promise<ChangeReminder | undefined> {
  const { sources } = await deps.prompts.get(describePrompt(deps, question));
  return describeChanges(collectPromptInput(deps, question), sources, deps.transcript.messages);
}

/** Collects the sources of the system prompt, without the text of the message. */
export function collectPromptInput(
  deps: Omit<PromptDeps, "transcript">,
  question: PromptQuestion,
): SystemPromptInput {
  const { project, givenPrompt, offers, startedAt } = deps;
  const { agent, model, tools, onDemand, instructions, servers } = question;
  return {
    agent,
    family: model.family,
    window: getWindow(model.limit),
    environment: getEnvironment(project, model, startedAt),
    skills: tools.some(({ name }) => name === "skill")
      ? offers.skills(project.skills, { agents: project.agents, agent })
      : [],
    instructions,
    // Agents that may not call tools of servers need no instructions for them.
    servers: [...tools, ...onDemand].every(({ name }) => isBuiltIn(name)) ? [] : servers,
    onDemand: listByServer(onDemand),
    given: givenPrompt,
  };
}

async function getParams(
  { plugins, context }: StepRequestDeps,
  { question, agent, model }: StepQuestion,
  signal: AbortSignal,
): Promise<Pick<ModelRequest, "temperature" | "topP" | "maxOutputTokens" | "options">> {
  const { temperature, topP } = model.abilities.temperature ? agent : {};
  const params = { temperature, topP, options: agent.options ?? {} };
  if (!plugins?.has("chat.params")) return params;
  const input = {
    sessionID: context.sessionId,
    agent: agent.name,
    model: { ...toPluginModel(model.ref), name: model.name },
    message: toPluginMessage(question),
  };
  return plugins.params(input, params, signal);
}

function getEnvironment(project: Project, model: Model, startedAt: number) {
  const { cwd, roots, worktree } = project.workspace;
  return {
    cwd,
    isGit: worktree !== undefined,
    platform: process.platform,
    date: formatDate(startedAt),
    additionalDirectories: roots.slice(1),
    modelName: model.name,
  };
}
