import type { Agent } from "../agent/agent.ts";
import type { Instruction } from "../instruction/instructions.ts";
import type { GivenPrompt, UserInfo } from "../message/message.ts";
import type { Model, ModelRequest } from "../model/model.ts";
import { authorMessage, authorModel } from "../plugin/plugin-type-mapping.ts";
import type { Tool } from "../tool/tool.ts";
import type { AgentCallsDeps } from "../tool-calls/agent-calls.ts";
import type { Project } from "../conversation/project.ts";
import { stepLimitReminder } from "../conversation/reminders.ts";
import type { StepInput } from "./step.ts";
import { buildSystemPrompt } from "./system-prompt.ts";
import { selectSkills, toToolSpecs } from "../tool-calls/tool-set.ts";
import type { Transcript } from "../conversation/transcript.ts";

export interface StepRequestDeps extends Pick<AgentCallsDeps, "project" | "context" | "plugins"> {
  transcript: Transcript;
  /** The client's instructions for the session. */
  givenPrompt?: GivenPrompt | undefined;
}

/** Who asks whom, with what. */
interface StepQuestion {
  question: UserInfo;
  agent: Agent;
  model: Model;
  tools: readonly Tool[];
  instructions: readonly Instruction[];
  /** The model is told that no step follows. */
  isLast: boolean;
}

/** What the model is asked in one step, its parameters as plugins leave them. */
export async function buildStepRequest(
  deps: StepRequestDeps,
  asked: StepQuestion,
  signal: AbortSignal,
): Promise<StepInput["request"]> {
  const request = { ...(await buildRequestHead(deps, asked, signal)), messages: deps.transcript.messages };
  return { ...request, ...(await getParams(deps, asked, signal)) };
}

/** What a request begins with, whatever the conversation is. */
export async function buildRequestHead(
  deps: StepRequestDeps,
  asked: StepQuestion,
  signal: AbortSignal,
): Promise<Pick<ModelRequest, "system" | "tools">> {
  return { system: await transformSystem(deps, asked, signal), tools: toToolSpecs(asked.tools) };
}

/** Returns the system prompt as plugins leave it. */
async function transformSystem(
  deps: StepRequestDeps,
  asked: StepQuestion,
  signal: AbortSignal,
): Promise<string[]> {
  const system = buildSystem(deps, asked);
  const { plugins, context } = deps;
  if (!plugins?.has("experimental.chat.system.transform")) return system;
  const input = { sessionID: context.sessionId, model: authorModel(asked.model.ref) };
  return plugins.system(input, system, signal);
}

function buildSystem({ project, givenPrompt }: StepRequestDeps, asked: StepQuestion): string[] {
  const { question, agent, model, instructions, isLast } = asked;
  const system = buildSystemPrompt({
    agent,
    family: model.family,
    environment: getEnvironment(project, model),
    skills: model.abilities.tools ? selectSkills(project.skills, agent) : [],
    instructions,
    given: givenPrompt,
    system: question.system,
  });
  return isLast ? [...system, stepLimitReminder()] : system;
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
    model: { ...authorModel(model.ref), name: model.name },
    message: authorMessage(question),
  };
  return plugins.params(input, params, signal);
}

function getEnvironment(project: Project, model: Model) {
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
