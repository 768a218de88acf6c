import type { Agent } from "../agent/agent.ts";
import type { Log } from "../base/log.ts";
import type { Emit } from "../message/event.ts";
import type { Decider } from "../permission/gate.ts";
import type { Plugins } from "../plugin/plugins.ts";
import type { ToolContext } from "../tool/tool.ts";
import type { Decisions } from "../conversation/decisions.ts";
import type { OpenCalls } from "./open-calls.ts";
import type { Project } from "../conversation/project.ts";
import type { ToolRunnerDeps } from "./tool-runner.ts";

/** Session services that tool calls need. */
export interface AgentCallsDeps {
  project: Project;
  gate: Decider;
  decisions: Decisions;
  openCalls?: OpenCalls | undefined;
  context: ToolContext;
  emit: Emit;
  /** Resolves when the client can receive more. */
  waitUntilReady: () => Promise<void>;
  log: Log;
  plugins?: Plugins | undefined;
}

/** The dependencies of a runner except its transcript. */
export type CallDeps = Omit<ToolRunnerDeps, "transcript">;

/** Returns the runner's dependencies for calls of the agent: its rules, limits and secrets. */
export function createCallDeps(deps: AgentCallsDeps, agent: Agent): CallDeps {
  const { config, workspace, secrets, diagnose } = deps.project;
  const limits = {
    maxLines: config.tool_output?.max_lines,
    maxBytes: config.tool_output?.max_bytes,
    folder: workspace.outputFolder,
  };
  const context = { ...deps.context, agent: agent.name };
  return {
    ...deps,
    context,
    rules: agent.rules,
    limitingRules: agent.limits,
    within: agent.within,
    secrets,
    limits,
    diagnose,
  };
}
